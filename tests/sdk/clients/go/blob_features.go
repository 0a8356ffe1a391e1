package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
)

func (c blobClient) in() *azcontainer.Client { return c.ServiceClient().NewContainerClient(container) }

func body(text string) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader([]byte(text))) }

// first is the first error, if any.
func first(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c blobClient) holds(ctx context.Context, name, wanted string) error {
	data, err := c.read(ctx, name, blob.HTTPRange{})
	return first(err, equal(name, string(data), wanted))
}

// buffers goes by buffers and files, several blocks at a time, and by blocks one by one.
func (c blobClient) buffers(ctx context.Context) error {
	one := c.in().NewBlockBlobClient("blob/buffer")
	_, err := one.UploadBuffer(ctx, large(), &blockblob.UploadBufferOptions{BlockSize: 1 << 20, Concurrency: 4})
	if err != nil {
		return err
	}
	back := make([]byte, len(large()))
	_, err = one.DownloadBuffer(ctx, back, &blob.DownloadBufferOptions{BlockSize: 1 << 20, Concurrency: 4})
	if err := first(err, equal("buffer", bytes.Equal(back, large()), true)); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "azblob")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file, err := os.Create(filepath.Join(folder, "file"))
	if err != nil {
		return err
	}
	defer file.Close()
	length, err := one.DownloadFile(ctx, file, nil)
	if err := first(err, equal("bytes of the file", length, len(large()))); err != nil {
		return err
	}
	written, err := os.ReadFile(file.Name())
	if err := first(err, equal("file", bytes.Equal(written, large()), true)); err != nil {
		return err
	}
	two := c.in().NewBlockBlobClient("blob/file")
	if _, err = two.UploadFile(ctx, file, nil); err != nil {
		return err
	}
	data, err := c.read(ctx, "blob/file", blob.HTTPRange{})
	if err := first(err, equal("blob of the file", bytes.Equal(data, large()), true)); err != nil {
		return err
	}
	_, err = two.StageBlock(ctx, "AAAA", body("staged"), nil)
	if err != nil {
		return err
	}
	lists, err := two.GetBlockList(ctx, blockblob.BlockListTypeAll, nil)
	if err := first(err, equal("staged", len(lists.UncommittedBlocks), 1)); err != nil {
		return err
	}
	_, err = two.CommitBlockList(ctx, []string{"AAAA"}, nil)
	return first(err, c.holds(ctx, "blob/file", "staged"))
}

func (c blobClient) features(ctx context.Context) error {
	one := c.in().NewBlockBlobClient("blob/features")
	if _, err := one.Upload(ctx, body("first"), nil); err != nil {
		return err
	}
	_, err := one.SetTags(ctx, map[string]string{"kind": "go"}, nil)
	if err != nil {
		return err
	}
	tags, err := one.GetTags(ctx, nil)
	if err := first(err, equal("tags", *tags.BlobTagSet[0].Value, "go")); err != nil {
		return err
	}
	found, err := c.ServiceClient().FilterBlobs(ctx, fmt.Sprintf("@container='%s' AND \"kind\"='go'", container), nil)
	if err := first(err, equal("found", len(found.Blobs), 1)); err != nil {
		return err
	}
	snapshot, err := one.CreateSnapshot(ctx, nil)
	if err != nil {
		return err
	}
	if _, err = one.SetMetadata(ctx, map[string]*string{"Color": to.Ptr("red")}, nil); err != nil {
		return err
	}
	_, err = one.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain")}, nil)
	if err != nil {
		return err
	}
	if _, err = one.SetTier(ctx, blob.AccessTierCool, nil); err != nil {
		return err
	}
	facts, err := one.GetProperties(ctx, nil)
	if err := first(err, equal("facts", []string{*facts.ContentType, *facts.AccessTier}, []string{"text/plain", "Cool"})); err != nil {
		return err
	}
	before, err := one.WithSnapshot(*snapshot.Snapshot)
	if err != nil {
		return err
	}
	then, err := before.GetProperties(ctx, nil)
	if err := first(err, equal("metadata of the snapshot", len(then.Metadata), 0)); err != nil {
		return err
	}
	held, err := lease.NewBlobClient(one, nil)
	if err != nil {
		return err
	}
	if _, err = held.AcquireLease(ctx, 15, nil); err != nil {
		return err
	}
	_, err = one.Delete(ctx, nil)
	if err := equal("without the lease", bloberror.HasCode(err, bloberror.LeaseIDMissing), true); err != nil {
		return err
	}
	if _, err = held.ReleaseLease(ctx, nil); err != nil {
		return err
	}
	_, err = one.Upload(ctx, body("second"), &blockblob.UploadOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}})
	if err := equal("it exists", bloberror.HasCode(err, bloberror.BlobAlreadyExists), true); err != nil {
		return err
	}
	_, err = one.Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)})
	return err
}

func (c blobClient) kinds(ctx context.Context) error {
	log := c.in().NewAppendBlobClient("blob/append")
	if _, err := log.Create(ctx, nil); err != nil {
		return err
	}
	for _, text := range []string{"one ", "two"} {
		if _, err := log.AppendBlock(ctx, body(text), nil); err != nil {
			return err
		}
	}
	if _, err := log.Seal(ctx, nil); err != nil {
		return err
	}
	_, err := log.AppendBlock(ctx, body("three"), nil)
	if err := equal("it is sealed", bloberror.HasCode(err, "BlobIsSealed"), true); err != nil {
		return err
	}
	disk := c.in().NewPageBlobClient("blob/pages")
	if _, err := disk.Create(ctx, 4096, nil); err != nil {
		return err
	}
	page := streaming.NopCloser(bytes.NewReader(large()[:512]))
	if _, err := disk.UploadPages(ctx, page, blob.HTTPRange{Offset: 1024, Count: 512}, nil); err != nil {
		return err
	}
	ranges, err := disk.NewGetPageRangesPager(nil).NextPage(ctx)
	if err := first(err, equal("ranges", []int64{*ranges.PageRange[0].Start, *ranges.PageRange[0].End}, []int64{1024, 1535})); err != nil {
		return err
	}
	return c.holds(ctx, "blob/append", "one two")
}

func (c blobClient) copies(ctx context.Context) error {
	source := c.in().NewBlockBlobClient("blob/source")
	if _, err := source.Upload(ctx, body("copied"), nil); err != nil {
		return err
	}
	signed, err := source.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		return err
	}
	bare, err := blob.NewClientWithNoCredential(signed, nil)
	if err != nil {
		return err
	}
	if _, err = bare.GetProperties(ctx, nil); err != nil {
		return err
	}
	target := func(name string) *blockblob.Client { return c.in().NewBlockBlobClient("copies/" + name) }
	_, started := target("a").StartCopyFromURL(ctx, signed, nil)
	_, waited := target("b").CopyFromURL(ctx, signed, nil)
	_, put := target("c").UploadBlobFromURL(ctx, signed, nil)
	_, staged := target("d/e").StageBlockFromURL(ctx, "AAAA", signed, nil)
	if err := first(started, waited, put, staged); err != nil {
		return err
	}
	if _, err = target("d/e").CommitBlockList(ctx, []string{"AAAA"}, nil); err != nil {
		return err
	}
	level, err := c.in().NewListBlobsHierarchyPager("/", &azcontainer.ListBlobsHierarchyOptions{Prefix: to.Ptr("copies/")}).NextPage(ctx)
	if err := first(err, equal("level", []int{len(level.Segment.BlobItems), len(level.Segment.BlobPrefixes)}, []int{3, 1})); err != nil {
		return err
	}
	batch, err := c.in().NewBatchBuilder()
	if err != nil {
		return err
	}
	for _, name := range []string{"copies/a", "copies/b", "copies/c", "copies/d/e"} {
		if err := first(c.holds(ctx, name, "copied"), batch.Delete(name, nil)); err != nil {
			return err
		}
	}
	answers, err := c.in().SubmitBatch(ctx, batch, nil)
	if err := first(err, equal("answers", len(answers.Responses), 4)); err != nil {
		return err
	}
	for _, answer := range answers.Responses {
		if answer.Error != nil {
			return answer.Error
		}
	}
	return nil
}
