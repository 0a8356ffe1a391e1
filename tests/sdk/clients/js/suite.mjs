// Requests of @azure/storage-blob to a server. Prints one JSON line for each group of operations:
// {group, error}.
// Settings come in the environment: CONNECTION_STRING, SECOND (another account), SECOND_SAS, LOCKING (an account
// whose new containers have object lock).
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  BlobBatchClient,
  BlobServiceClient,
  BlobSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";

const options = { retryOptions: { maxTries: 1 } };
const service = BlobServiceClient.fromConnectionString(process.env.CONNECTION_STRING, options);
const second = BlobServiceClient.fromConnectionString(process.env.SECOND, options);
const container = service.getContainerClient(`js${Date.now()}`);
const source = second.getContainerClient("js-source");
const data = randomBytes(70_144);
const whole = (blob) => blob.downloadToBuffer();

async function refused(call, code) {
  const error = await call().then(() => undefined, (e) => e);
  assert.equal(error?.code ?? error?.details?.errorCode ?? "not refused", code);
}

async function group(name, run) {
  let error = "";
  try {
    await run();
  } catch (e) {
    console.error(name, e);
    error = `${e.code ?? e.name}: ${String(e.message).split("\n")[0]}`.slice(0, 200);
  }
  console.log(JSON.stringify({ group: name, error }));
}

await group("containers", async () => {
  await container.create({ metadata: { a: "b" } });
  assert.equal((await container.getProperties()).metadata.a, "b");
  await container.setMetadata({ c: "d" });
  const names = [];
  for await (const found of service.listContainers({ includeMetadata: true, prefix: "js" })) names.push(found.name);
  assert.ok(names.includes(container.containerName));
  await refused(() => container.create(), "ContainerAlreadyExists");
});

await group("block blobs", async () => {
  const small = container.getBlockBlobClient("dir/with space+%41 ü.txt");
  await small.upload("hello", 5, { blobHTTPHeaders: { blobContentType: "text/x" }, metadata: { k: "v" } });
  assert.equal((await whole(small)).toString(), "hello");
  const found = await small.getProperties();
  assert.deepEqual([found.contentType, found.metadata.k], ["text/x", "v"]);
  const large = container.getBlockBlobClient("large");
  const body = randomBytes(9 << 20);
  await large.uploadData(body, { blockSize: 1 << 20, concurrency: 4, maxSingleShotSize: 1 << 20 });
  assert.ok(body.equals(await large.downloadToBuffer(0, undefined, { blockSize: 1 << 20, concurrency: 4 })));
  assert.equal((await large.getBlockList("committed")).committedBlocks.length, 9);
  assert.ok(body.subarray(100, 300).equals(await large.downloadToBuffer(100, 200)));
  await refused(() => small.upload("x", 1, { conditions: { ifNoneMatch: "*" } }), "BlobAlreadyExists");
  await refused(() => small.upload("x", 1, { conditions: { ifMatch: '"0x1"' } }), "ConditionNotMet");
});

await group("listing", async () => {
  for (let n = 0; n < 12; n++) await container.getBlockBlobClient(`l/${n % 3}/${n}`).upload("x", 1);
  let count = 0;
  for await (const page of container.listBlobsFlat({ prefix: "l/" }).byPage({ maxPageSize: 5 })) {
    count += page.segment.blobItems.length;
  }
  assert.equal(count, 12);
  const prefixes = [];
  for await (const item of container.listBlobsByHierarchy("/", { prefix: "l/" })) prefixes.push(item.name);
  assert.deepEqual(prefixes, ["l/0/", "l/1/", "l/2/"]);
});

await group("listing in columns", async () => {
  // Clients before 12.34 do not ask for it.
  const { StorageResponseFormat } = await import("@azure/storage-blob");
  if (!StorageResponseFormat) return;
  const tagged = container.getBlockBlobClient("l/1/tagged");
  await tagged.upload("four", 4, { metadata: { Key: "v" }, tags: { t: "1" }, blobHTTPHeaders: { blobContentType: "a/b" } });
  await tagged.createSnapshot();
  const shown = { prefix: "l/", includeMetadata: true, includeTags: true, includeSnapshots: true };
  const all = async (more) => {
    const found = [];
    for await (const page of container.listBlobsFlat({ ...shown, ...more }).byPage({ maxPageSize: 5 })) {
      found.push(...page.segment.blobItems);
    }
    return found;
  };
  const columns = { responseFormat: StorageResponseFormat.Arrow };
  const [xml, arrow] = [await all({}), await all(columns)];
  assert.equal(arrow.length, 14);
  const plain = (items) => JSON.parse(JSON.stringify(items, (key, value) => (value === "" ? undefined : value)));
  const facts = ({ name, snapshot, metadata, tags, properties: p }) => plain({
    name, snapshot, metadata, tags, length: p.contentLength, type: p.contentType, etag: p.etag, md5: p.contentMD5,
    modified: p.lastModified, created: p.createdOn, kind: p.blobType, tier: p.accessTier, inferred: p.accessTierInferred,
    lease: p.leaseState, status: p.leaseStatus, encrypted: p.serverEncrypted, count: p.tagCount });
  assert.deepEqual(arrow.map(facts), xml.map(facts));
  const bounded = await all({ ...columns, startFrom: "l/1/", endBefore: "l/1/7" });
  assert.deepEqual(bounded.map((item) => item.name), ["l/1/1", "l/1/10", "l/1/4"]);
  const folded = [];
  for await (const item of container.listBlobsByHierarchy("/", { prefix: "l/", ...columns })) folded.push([item.kind, item.name]);
  assert.deepEqual(folded, [["prefix", "l/0/"], ["prefix", "l/1/"], ["prefix", "l/2/"]]);
});

await group("queries", async () => {
  const table = container.getBlockBlobClient("table.csv");
  await table.upload("100,200,300\n150,250,350\n", 24);
  const text = async (statement, more = {}) => {
    const answer = await table.query(statement, more);
    const pieces = [];
    for await (const piece of answer.readableStreamBody) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  };
  const loaded = [];
  const onProgress = ({ loadedBytes }) => loaded.push(loadedBytes);
  assert.equal(await text("select * from BlobStorage", { onProgress }), "100,200,300\n150,250,350\n");
  assert.equal(loaded.at(-1), 24);
  assert.equal(await text("select _2 from BlobStorage where _1 > 120"), "250\n");
  const json = { outputTextConfiguration: { kind: "json", recordSeparator: "\n" } };
  assert.deepEqual(JSON.parse(await text("select _1 as a from BlobStorage limit 1", json)), { a: "100" });
  const errors = [];
  const wrong = { inputTextConfiguration: { kind: "json", recordSeparator: "\n" }, onError: (e) => errors.push(e) };
  await text("select * from BlobStorage", wrong);
  assert.equal(errors[0].isFatal, true);
  await refused(() => table.query("select"), "InvalidInput");
});

await group("append blobs", async () => {
  const blob = container.getAppendBlobClient("append");
  await blob.create();
  await blob.appendBlock("one,", 4);
  await blob.appendBlock("two", 3, { conditions: { appendPosition: 4 } });
  await refused(() => blob.appendBlock("x", 1, { conditions: { appendPosition: 4 } }), "AppendPositionConditionNotMet");
  assert.equal((await whole(blob)).toString(), "one,two");
  await blob.seal();
});

await group("page blobs", async () => {
  const blob = container.getPageBlobClient("page");
  await blob.create(4096);
  await blob.uploadPages(data.subarray(0, 1024), 512, 1024);
  await blob.clearPages(512, 512);
  const ranges = (await blob.getPageRanges()).pageRange;
  // The client takes the inclusive end for an exclusive one: 512 bytes are counted as 511.
  assert.deepEqual(ranges.map((r) => [r.offset, r.count]), [[1024, 511]]);
  await blob.resize(8192);
  await blob.updateSequenceNumber("update", 5);
  assert.equal((await blob.getProperties()).blobSequenceNumber, 5);
});

await group("snapshots", async () => {
  const blob = container.getBlockBlobClient("snap");
  await blob.upload("old", 3);
  const { snapshot } = await blob.createSnapshot();
  await blob.upload("new", 3);
  assert.equal((await whole(blob.withSnapshot(snapshot))).toString(), "old");
  await refused(() => blob.delete(), "SnapshotsPresent");
  await blob.delete({ deleteSnapshots: "include" });
});

await group("soft delete", async () => {
  await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
  try {
    const blob = container.getBlockBlobClient("softly");
    await blob.upload("old", 3);
    const { snapshot } = await blob.createSnapshot();
    await blob.upload("new", 3);
    await blob.delete({ deleteSnapshots: "include" });
    await refused(() => blob.download(), "BlobNotFound");
    const shown = [];
    for await (const found of container.listBlobsFlat({ includeDeleted: true, prefix: "softly" })) shown.push(found);
    assert.deepEqual(shown.map((b) => [b.name, b.deleted, b.properties.remainingRetentionDays]), [["softly", true, 6]]);
    await blob.undelete();
    assert.equal((await whole(blob)).toString(), "new");
    assert.equal((await whole(blob.withSnapshot(snapshot))).toString(), "old");
  } finally {
    await service.setProperties({ deleteRetentionPolicy: { enabled: false } });
  }
});

await group("immutability", async () => {
  const locked = BlobServiceClient.fromConnectionString(process.env.LOCKING, options).getContainerClient("locked");
  await locked.create();
  assert.equal((await locked.getProperties()).isImmutableStorageWithVersioningEnabled, true);
  const blob = locked.getBlockBlobClient("held");
  const { versionId } = await blob.upload("old", 3);
  const expiriesOn = new Date(Math.ceil(Date.now() / 1000) * 1000 + 3_600_000);
  const set = await blob.setImmutabilityPolicy({ expiriesOn, policyMode: "Unlocked" });
  assert.deepEqual([set.immutabilityPolicyExpiry, set.immutabilityPolicyMode], [expiriesOn, "unlocked"]);
  assert.equal((await blob.setLegalHold(true)).legalHold, true);
  const found = await blob.getProperties();
  assert.deepEqual([found.immutabilityPolicyExpiresOn, found.legalHold], [expiriesOn, true]);
  for await (const item of locked.listBlobsFlat({ includeImmutabilityPolicy: true, includeLegalHold: true })) {
    const { immutabilityPolicyExpiresOn, immutabilityPolicyMode, legalHold } = item.properties;
    assert.deepEqual([immutabilityPolicyExpiresOn, immutabilityPolicyMode, legalHold], [expiriesOn, "unlocked", true]);
  }
  await refused(() => blob.setMetadata({ a: "b" }), "BlobImmutableDueToLegalHold");
  await blob.setLegalHold(false);
  await refused(() => blob.setMetadata({ a: "b" }), "BlobImmutableDueToPolicy");
  await blob.upload("new", 3);
  const former = blob.withVersion(versionId);
  await refused(() => former.delete(), "BlobImmutableDueToPolicy");
  assert.equal((await whole(former)).toString(), "old");
  await refused(() => locked.delete(), "ContainerProtectedFromDeletion");
  await former.deleteImmutabilityPolicy();
  await former.delete();
  assert.equal((await whole(blob)).toString(), "new");
});

await group("tags", async () => {
  const blob = container.getBlockBlobClient("tagged");
  const mark = randomBytes(8).toString("hex");
  await blob.upload("x", 1, { tags: { mark } });
  await blob.setTags({ mark, more: "1" });
  assert.deepEqual((await blob.getTags()).tags, { mark, more: "1" });
  await refused(() => blob.download(0, 1, { conditions: { tagConditions: "\"more\"='2'" } }), "ConditionNotMet");
  const names = [];
  for (let tries = 0; tries < 50 && names.length === 0; tries++) {
    for await (const found of service.findBlobsByTags(`"mark"='${mark}'`)) names.push(found.name);
    if (names.length === 0) await sleep(100);
  }
  assert.deepEqual(names, ["tagged"]);
});

await group("leases", async () => {
  const blob = container.getBlockBlobClient("leased");
  await blob.upload("x", 1);
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(15);
  await refused(() => blob.upload("y", 1), "LeaseIdMissing");
  await blob.upload("y", 1, { conditions: { leaseId: lease.leaseId } });
  await lease.renewLease();
  await lease.releaseLease();
  const held = container.getBlobLeaseClient();
  await held.acquireLease(-1);
  await held.breakLease(0);
});

await group("copy and from URL", async () => {
  await source.create();
  const from = source.getBlockBlobClient("from/a + b%.bin");
  await from.uploadData(data);
  const url = `${from.url}?${process.env.SECOND_SAS}`;
  const poller = await container.getBlockBlobClient("copied").beginCopyFromURL(url, { intervalInMs: 50 });
  assert.equal((await poller.pollUntilDone()).copyStatus, "success");
  const now = container.getBlockBlobClient("copied-now");
  await now.syncCopyFromURL(url);
  const put = container.getBlockBlobClient("put-from");
  await put.syncUploadFromURL(url);
  const blocks = container.getBlockBlobClient("blocks-from");
  await blocks.stageBlockFromURL("MQ==", url, 0, 1000);
  await blocks.stageBlockFromURL("Mg==", url, 1000, data.length - 1000);
  await blocks.commitBlockList(["MQ==", "Mg=="]);
  for (const blob of [container.getBlockBlobClient("copied"), now, put, blocks]) {
    assert.ok(data.equals(await whole(blob)), blob.name);
  }
});

await group("tiers", async () => {
  const blob = container.getBlockBlobClient("tiered");
  await blob.upload("x", 1, { tier: "Cool" });
  assert.equal((await blob.getProperties()).accessTier, "Cool");
  await blob.setAccessTier("Archive");
  await refused(() => blob.download(), "BlobArchived");
});

await group("batch", async () => {
  const blobs = [0, 1, 2, 3].map((n) => container.getBlockBlobClient(`batch${n}`));
  for (const blob of blobs) await blob.upload("x", 1);
  const batch = service.getBlobBatchClient();
  assert.ok(batch instanceof BlobBatchClient);
  const tiers = await batch.setBlobsAccessTier(blobs, "Cool");
  assert.equal(tiers.subResponsesSucceededCount, 4);
  const deleted = await batch.deleteBlobs(blobs);
  assert.equal(deleted.subResponsesSucceededCount, 4);
});

await group("SAS", async () => {
  const credential = service.credential;
  assert.ok(credential instanceof StorageSharedKeyCredential);
  const blob = container.getBlockBlobClient("signed");
  await blob.upload("signed", 6);
  const query = generateBlobSASQueryParameters(
    { containerName: container.containerName, blobName: "signed", permissions: BlobSASPermissions.parse("r"),
      expiresOn: new Date(Date.now() + 600_000), contentDisposition: "attachment" }, credential);
  const answer = await fetch(`${blob.url}?${query}`);
  assert.deepEqual([answer.status, answer.headers.get("content-disposition"), await answer.text()],
    [200, "attachment", "signed"]);
});

await group("service properties", async () => {
  await service.setProperties({ cors: [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 60 }] });
  assert.equal((await service.getProperties()).cors[0].allowedOrigins, "*");
  await service.setProperties({ cors: [] });
  assert.equal((await service.getAccountInfo()).accountKind, "StorageV2");
});

await container.delete();
