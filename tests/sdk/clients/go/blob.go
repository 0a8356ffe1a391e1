package main

import (
	"bytes"
	"context"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	azcontainer "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// blobClient is azblob.
type blobClient struct{ *azblob.Client }

func newBlob() (blobClient, error) {
	credential, err := azblob.NewSharedKeyCredential(account, key)
	if err != nil {
		return blobClient{}, err
	}
	made, err := azblob.NewClientWithSharedKeyCredential(endpoint+"/"+account, credential, nil)
	return blobClient{made}, err
}

func (c blobClient) read(ctx context.Context, name string, at blob.HTTPRange) ([]byte, error) {
	got, err := c.DownloadStream(ctx, container, name, &azblob.DownloadStreamOptions{Range: at})
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return io.ReadAll(got.Body)
}

func (c blobClient) stream(ctx context.Context) error {
	_, err := c.UploadStream(ctx, container, "blob/large", bytes.NewReader(large()), &azblob.UploadStreamOptions{
		BlockSize: 1 << 20, Metadata: map[string]*string{"Color": to.Ptr("green")},
	})
	if err != nil {
		return err
	}
	data, err := c.read(ctx, "blob/large", blob.HTTPRange{})
	if err != nil {
		return err
	}
	if err := equal("content is equal", bytes.Equal(data, large()), true); err != nil {
		return err
	}
	part, err := c.read(ctx, "blob/large", blob.HTTPRange{Offset: 1_000, Count: 100})
	if err != nil {
		return err
	}
	if err := equal("range is equal", bytes.Equal(part, large()[1_000:1_100]), true); err != nil {
		return err
	}
	facts, err := c.ServiceClient().NewContainerClient(container).NewBlobClient("blob/large").GetProperties(ctx, nil)
	if err != nil {
		return err
	}
	return equal("metadata", *facts.Metadata["Color"], "green")
}

func (c blobClient) lists(ctx context.Context) error {
	var names []string
	pages := c.NewListBlobsFlatPager(container, &azblob.ListBlobsFlatOptions{
		Prefix: to.Ptr("go/l"), MaxResults: to.Ptr(int32(20)), Include: azcontainer.ListBlobsInclude{Metadata: true},
	})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	if err := equal("names", len(names), 26); err != nil {
		return err
	}
	data, err := c.read(ctx, "go/large", blob.HTTPRange{})
	if err != nil {
		return err
	}
	return equal("what S3 wrote is equal", bytes.Equal(data, large()), true)
}
