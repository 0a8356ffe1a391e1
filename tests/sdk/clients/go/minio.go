package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// minioClient is minio-go.
type minioClient struct{ *minio.Client }

func newMinio() (minioClient, error) {
	made, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(account, key, "")})
	return minioClient{made}, err
}

func (c minioClient) objects(ctx context.Context) error {
	options := minio.PutObjectOptions{PartSize: partBytes, UserMetadata: map[string]string{"Color": "green"}}
	for name, size := range map[string]int64{"minio/known": int64(len(large())), "minio/unknown": -1} {
		if _, err := c.PutObject(ctx, container, name, bytes.NewReader(large()), size, options); err != nil {
			return err
		}
		object, err := c.GetObject(ctx, container, name, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		data, err := io.ReadAll(object)
		if err != nil {
			return err
		}
		if err := equal(name+" is equal", bytes.Equal(data, large()), true); err != nil {
			return err
		}
	}
	facts, err := c.StatObject(ctx, container, "minio/known", minio.StatObjectOptions{})
	if err != nil {
		return err
	}
	return equal("metadata", facts.UserMetadata, map[string]string{"Color": "green"})
}

func (c minioClient) rest(ctx context.Context) error {
	signed, err := c.PresignedGetObject(ctx, container, "minio/known", time.Minute, nil)
	if err != nil {
		return err
	}
	answer, err := http.Get(signed.String())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := equal("status", answer.StatusCode, http.StatusOK); err != nil {
		return err
	}
	var names []string
	objects := make(chan minio.ObjectInfo, 10)
	for one := range c.ListObjects(ctx, container, minio.ListObjectsOptions{Prefix: "minio/", Recursive: true}) {
		if one.Err != nil {
			return one.Err
		}
		names = append(names, one.Key)
		objects <- one
	}
	close(objects)
	if err := equal("names", names, "[minio/known minio/unknown]"); err != nil {
		return err
	}
	for failed := range c.RemoveObjects(ctx, container, objects, minio.RemoveObjectsOptions{}) {
		return fmt.Errorf("%s is not removed: %w", failed.ObjectName, failed.Err)
	}
	return nil
}
