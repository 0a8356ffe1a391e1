// What the AWS SDK for JavaScript and minio-js do over S3. One JSON line for each group; `s3_js.py`
// starts it.

import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { Readable } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { createPresignedPost } from "@aws-sdk/s3-presigned-post";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import * as Minio from "minio";

const { ENDPOINT, KEY_ID, SECRET, BUCKET, LARGE } = process.env;
const credentials = { accessKeyId: KEY_ID, secretAccessKey: SECRET };
const client = new s3.S3Client({ endpoint: ENDPOINT, region: "us-east-1", forcePathStyle: true, credentials, maxAttempts: 1 });
const url = new URL(ENDPOINT);
const minio = new Minio.Client({
  endPoint: url.hostname, port: Number(url.port), useSSL: false, accessKey: KEY_ID, secretKey: SECRET, region: "us-east-1",
});

function equal(found, wanted) {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`wanted ${other}, found ${one}`);
}

const digest = data => createHash("sha256").update(data).digest("hex");
const send = command => client.send(command);
const at = Key => ({ Bucket: BUCKET, Key });
const bytes = async answer => Buffer.from(await answer.Body.transformToByteArray());

async function collected(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

const groups = {
  "put with checksums, streamed bodies": async () => {
    for (const ChecksumAlgorithm of [undefined, "CRC32", "CRC32C", "SHA1", "SHA256"]) {
      await send(new s3.PutObjectCommand({ ...at("sum"), Body: "text", ChecksumAlgorithm, Metadata: { a: "b" } }));
      const found = await send(new s3.GetObjectCommand({ ...at("sum"), ChecksumMode: "ENABLED" }));
      equal([(await bytes(found)).toString(), found.Metadata], ["text", { a: "b" }]);
    }
    const Body = Readable.from([Buffer.from("streamed "), Buffer.from("body")]);
    await send(new s3.PutObjectCommand({ ...at("stream"), Body, ContentLength: 13 }));
    const found = await send(new s3.GetObjectCommand(at("stream")));
    equal([(await bytes(found)).toString(), found.ContentEncoding], ["streamed body", undefined]);
  },
  "lib-storage: an upload in parts": async () => {
    const params = { ...at("large-sdk"), Body: createReadStream(LARGE), ContentType: "x/y" };
    await new Upload({ client, params, partSize: 5 << 20, queueSize: 3 }).done();
    const found = await send(new s3.GetObjectCommand(at("large-sdk")));
    equal([digest(await bytes(found)), found.ContentType], [digest(readFileSync(LARGE)), "x/y"]);
  },
  "conditions": async () => {
    const refused = await send(new s3.PutObjectCommand({ ...at("sum"), Body: "x", IfNoneMatch: "*" })).catch(error => error.name);
    equal(refused, "PreconditionFailed");
    const missing = await send(new s3.GetObjectCommand(at("none"))).catch(error => error.name);
    equal(missing, "NoSuchKey");
  },
  "presigned URLs": async () => {
    const put = await getSignedUrl(client, new s3.PutObjectCommand(at("signed")), { expiresIn: 60 });
    equal((await fetch(put, { method: "PUT", body: "signed" })).status, 200);
    const get = await getSignedUrl(client, new s3.GetObjectCommand(at("signed")), { expiresIn: 60 });
    equal(await (await fetch(get)).text(), "signed");
  },
  "browser forms": async () => {
    const Conditions = [["content-length-range", 1, 100], ["starts-with", "$Content-Type", "text/"]];
    const asked = { Bucket: BUCKET, Key: "form/${filename}", Conditions, Fields: { success_action_status: "201" } };
    const made = await createPresignedPost(client, asked);
    const form = new FormData();
    for (const [name, value] of Object.entries(made.fields)) form.append(name, value);
    form.append("Content-Type", "text/plain");
    form.append("file", new File(["of a form"], "a.txt"));
    const answer = await fetch(made.url, { method: "POST", body: form });
    equal([answer.status, (await answer.text()).includes("<Key>form/a.txt</Key>")], [201, true]);
    const found = await send(new s3.GetObjectCommand(at("form/a.txt")));
    equal([(await bytes(found)).toString(), found.ContentType], ["of a form", "text/plain"]);
  },
  "what Blob wrote, in ranges": async () => {
    const found = await send(new s3.GetObjectCommand({ ...at("from-blob.bin"), Range: "bytes=100-199" }));
    equal([found.ContentLength, (await bytes(found)).length], [100, 100]);
    const copied = await send(new s3.CopyObjectCommand({ ...at("copied"), CopySource: `${BUCKET}/from-blob.bin` }));
    equal(copied.CopyObjectResult.ETag.length > 30, true);
  },
  "minio-js: put, parts, list, presigned": async () => {
    await minio.fPutObject(BUCKET, "large-minio", LARGE, { "x-amz-meta-a": "b" });
    equal(digest(await collected(await minio.getObject(BUCKET, "large-minio"))), digest(readFileSync(LARGE)));
    await minio.putObject(BUCKET, "small-minio", "small");
    const names = [];
    for await (const found of minio.listObjectsV2(BUCKET, "small", true)) names.push(found.name);
    equal(names, ["small-minio"]);
    equal(await (await fetch(await minio.presignedGetObject(BUCKET, "small-minio", 60))).text(), "small");
  },
  "lists and DeleteObjects": async () => {
    const page = await send(new s3.ListObjectsV2Command({ Bucket: BUCKET, Delimiter: "/" }));
    equal(page.CommonPrefixes.map(one => one.Prefix), ["form/"]);
    const Objects = page.Contents.map(one => ({ Key: one.Key })).filter(one => !one.Key.startsWith("large"));
    const done = await send(new s3.DeleteObjectsCommand({ Bucket: BUCKET, Delete: { Objects } }));
    equal([done.Deleted.length, done.Errors], [Objects.length, undefined]);
  },
};

for (const [group, run] of Object.entries(groups)) {
  const error = await run().then(() => "", failure => `${failure.name}: ${failure.message}`);
  console.log(JSON.stringify({ group, error }));
}
