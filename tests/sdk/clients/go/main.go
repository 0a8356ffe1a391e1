// The clients for Go: AWS SDK v2, minio-go and azblob, on one container. A line of JSON for each group of operations.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// What the script tells: where the server is, and who asks.
var (
	endpoint  = os.Getenv("ENDPOINT")
	address   = os.Getenv("ADDRESS")
	account   = os.Getenv("ACCOUNT")
	key       = os.Getenv("KEY")
	container = os.Getenv("CONTAINER")
)

// partBytes is the least size of a part.
const partBytes = 5 << 20

// large is content that needs several parts.
func large() []byte {
	data := make([]byte, 12<<20+7)
	for at := range data {
		data[at] = byte(at*7 + at>>11)
	}
	return data
}

func group(name string, run func(context.Context) error) {
	row := map[string]string{"group": name, "error": ""}
	if err := guarded(run); err != nil {
		row["error"] = err.Error()
	}
	line, err := json.Marshal(row)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// guarded makes an error of a panic, as of an answer without what was expected, so that later groups run.
func guarded(run func(context.Context) error) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("panic: %v", why)
		}
	}()
	return run(context.Background())
}

// equal fails unless both are shown alike.
func equal(what string, found, wanted any) error {
	if fmt.Sprint(found) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s: %v, not %v", what, found, wanted)
	}
	return nil
}

func main() {
	aws := newAWS()
	group("AWS: put, get, head, conditions", aws.objects)
	group("AWS: parts by the manager", aws.parts)
	group("AWS: lists by pages", aws.lists)
	group("AWS: presigned", aws.presigned)
	group("AWS: versions, many deleted", aws.versions)
	minio, err := newMinio()
	if err != nil {
		panic(err)
	}
	group("minio-go: put, get, unknown length", minio.objects)
	group("minio-go: lists, presigned, removals", minio.rest)
	blob, err := newBlob()
	if err != nil {
		panic(err)
	}
	group("azblob: stream in blocks, ranges, metadata", blob.stream)
	group("azblob: lists, what S3 wrote", blob.lists)
	group("azblob: buffers, files, blocks", blob.buffers)
	group("azblob: tags, snapshot, lease, tier, conditions", blob.features)
	group("azblob: append and page blobs", blob.kinds)
	group("azblob: SAS, copies, hierarchy, batch", blob.copies)
}
