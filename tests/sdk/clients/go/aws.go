package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// awsClient is the AWS SDK for Go v2.
type awsClient struct{ s3 *s3.Client }

func newAWS() awsClient {
	return awsClient{s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider(account, key, ""),
		Region:       "us-east-1",
		UsePathStyle: true,
	})}
}

// refused fails unless err has this code.
func refused(err error, code string) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Errorf("not refused with %s: %v", code, err)
	}
	return equal("code", api.ErrorCode(), code)
}

func (c awsClient) read(ctx context.Context, bucket, name string) ([]byte, error) {
	got, err := c.s3.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &bucket, Key: &name, ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	return io.ReadAll(got.Body)
}

func (c awsClient) objects(ctx context.Context) error {
	put := &s3.PutObjectInput{
		Bucket: &container, Key: aws.String("go/small"), Body: bytes.NewReader([]byte("small")),
		Metadata: map[string]string{"color": "green"}, ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	}
	if _, err := c.s3.PutObject(ctx, put); err != nil {
		return err
	}
	data, err := c.read(ctx, container, "go/small")
	if err != nil {
		return err
	}
	if err := equal("content", string(data), "small"); err != nil {
		return err
	}
	head, err := c.s3.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &container, Key: put.Key})
	if err != nil {
		return err
	}
	if err := equal("metadata", head.Metadata, put.Metadata); err != nil {
		return err
	}
	put.Body, put.IfNoneMatch = bytes.NewReader([]byte("other")), aws.String("*")
	_, err = c.s3.PutObject(ctx, put)
	if err := refused(err, "PreconditionFailed"); err != nil {
		return err
	}
	_, err = c.read(ctx, container, "go/missing")
	return refused(err, "NoSuchKey")
}

func (c awsClient) parts(ctx context.Context) error {
	upload := manager.NewUploader(c.s3, func(u *manager.Uploader) { u.PartSize = partBytes })
	_, err := upload.Upload(ctx, &s3.PutObjectInput{
		Bucket: &container, Key: aws.String("go/large"), Body: bytes.NewReader(large()),
	})
	if err != nil {
		return err
	}
	buffer := manager.NewWriteAtBuffer(nil)
	_, err = manager.NewDownloader(c.s3).Download(ctx, buffer, &s3.GetObjectInput{
		Bucket: &container, Key: aws.String("go/large"),
	})
	if err != nil {
		return err
	}
	return equal("content is equal", bytes.Equal(buffer.Bytes(), large()), true)
}

func (c awsClient) lists(ctx context.Context) error {
	for number := range 25 {
		_, err := c.s3.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &container, Key: aws.String(fmt.Sprintf("go/list/%02d", number)), Body: bytes.NewReader(nil),
		})
		if err != nil {
			return err
		}
	}
	pages, names := 0, 0
	all := s3.NewListObjectsV2Paginator(c.s3, &s3.ListObjectsV2Input{
		Bucket: &container, Prefix: aws.String("go/list/"), MaxKeys: aws.Int32(10),
	})
	for all.HasMorePages() {
		page, err := all.NextPage(ctx)
		if err != nil {
			return err
		}
		pages, names = pages+1, names+len(page.Contents)
	}
	return equal("pages and names", []int{pages, names}, []int{3, 25})
}

func (c awsClient) presigned(ctx context.Context) error {
	signer := s3.NewPresignClient(c.s3, s3.WithPresignExpires(time.Minute))
	signed, err := signer.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &container, Key: aws.String("go/small")})
	if err != nil {
		return err
	}
	answer, err := http.Get(signed.URL)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return equal("status and content", fmt.Sprintf("%d %s", answer.StatusCode, data), "200 small")
}

func (c awsClient) versions(ctx context.Context) error {
	bucket := container + "-versions"
	if _, err := c.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		return err
	}
	_, err := c.s3.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket:                  &bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		return err
	}
	for _, body := range []string{"one", "two"} {
		put := &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("v"), Body: bytes.NewReader([]byte(body))}
		if _, err := c.s3.PutObject(ctx, put); err != nil {
			return err
		}
	}
	if _, err := c.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String("v")}); err != nil {
		return err
	}
	listed, err := c.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
	if err != nil {
		return err
	}
	if err := equal("versions and markers", []int{len(listed.Versions), len(listed.DeleteMarkers)}, []int{2, 1}); err != nil {
		return err
	}
	var all []types.ObjectIdentifier
	for _, one := range listed.Versions {
		all = append(all, types.ObjectIdentifier{Key: one.Key, VersionId: one.VersionId})
	}
	for _, one := range listed.DeleteMarkers {
		all = append(all, types.ObjectIdentifier{Key: one.Key, VersionId: one.VersionId})
	}
	done, err := c.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: all}})
	if err != nil {
		return err
	}
	if err := equal("deleted and refused", []int{len(done.Deleted), len(done.Errors)}, []int{3, 0}); err != nil {
		return err
	}
	_, err = c.s3.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	return err
}
