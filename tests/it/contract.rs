//! The published description of the protocol is compared with the source.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use blockyard::protocol::azure::errors::error_row;
use blockyard::protocol::model::OPERATION_NAMES;
use blockyard::protocol::model::Reason;

use crate::tree;
use crate::tree::File;

/// Served by the front end before a request becomes an operation.
const NOT_AN_OPERATION: &str = "PreflightBlobRequest";

/// Operations that no request of Blob asks for.
const OF_OTHER_DIALECTS: [&str; 20] = [
    "AbortUpload",
    "CompleteUpload",
    "CopyNamedBlob",
    "CopyPart",
    "CreateUpload",
    "DeleteBlobs",
    "GetBlobAttributes",
    "GetBlobGrants",
    "GetBlobLock",
    "GetBlobPart",
    "GetContainerGrants",
    "GetContainerSetting",
    "ListParts",
    "ListUploads",
    "RemoveContainerSetting",
    "RestoreBlob",
    "SetBlobGrants",
    "SetContainerGrants",
    "SetContainerSetting",
    "UploadPart",
];

/// Every name an operation of Blob goes by.
pub(crate) fn served() -> BTreeSet<String> {
    assert!(OPERATION_NAMES.len() > 30, "{OPERATION_NAMES:?}");
    let own = OPERATION_NAMES.into_iter().filter(|name| !OF_OTHER_DIALECTS.contains(name));
    own.chain([NOT_AN_OPERATION]).map(str::to_owned).collect()
}

/// The description: its index and a file for each kind of thing.
fn description() -> Vec<File> {
    let index = File {
        name: "api-spec/azure-blob.yaml".into(),
        text: tree::read("api-spec/azure-blob.yaml"),
    };
    std::iter::once(index).chain(tree::files("api-spec/blob", "yaml")).collect()
}

/// What follows a key, wherever it stands.
fn values<'a>(files: &'a [File], key: &'a str) -> impl Iterator<Item = &'a str> {
    files.iter().flat_map(|file| file.text.lines()).filter_map(move |l| l.trim().strip_prefix(key))
}

#[test]
fn every_operation_is_described_exactly_once() {
    let files = description();
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for id in values(&files, "operationId: ") {
        *count.entry(id).or_default() += 1;
    }
    let twice: Vec<&str> = count.iter().filter(|(_, n)| **n > 1).map(|(id, _)| *id).collect();
    assert!(twice.is_empty(), "described twice in api-spec/blob: {twice:?}");
    let described: BTreeSet<String> = count.into_keys().map(str::to_owned).collect();
    let served = served();
    let missing: Vec<&String> = served.difference(&described).collect();
    assert!(missing.is_empty(), "served and not described in api-spec/blob: {missing:?}");
    let unknown: Vec<&String> = described.difference(&served).collect();
    assert!(unknown.is_empty(), "described in api-spec/blob and not served: {unknown:?}");
}

/// The words of every list behind `key`, which may run over several lines.
fn lists<'a>(text: &'a str, key: &str) -> Vec<Vec<&'a str>> {
    let lists = text.split(key).skip(1).map(|rest| {
        let (_, rest) = rest.split_once('[').expect("a list in brackets");
        let (words, _) = rest.split_once(']').expect("the list ends");
        words.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
    });
    lists.collect()
}

#[test]
fn every_error_code_described_is_a_row_of_the_table() {
    let files = description();
    let mut described = 0;
    for file in &files {
        described += lists(&file.text, " x-error-codes:").len();
        for key in [" x-error-codes:", "x-common-error-codes:", "x-signature-error-codes:"] {
            for list in lists(&file.text, key) {
                let distinct: BTreeSet<&str> = list.iter().copied().collect();
                assert_eq!(distinct.len(), list.len(), "{}: {list:?}", file.name);
                for name in list {
                    let known = Reason::ALL.iter().any(|code| error_row(*code).code == name);
                    assert!(known, "{}: {name} is not in src/protocol/model/reason.rs", file.name);
                }
            }
        }
    }
    assert_eq!(described, values(&files, "operationId: ").count(), "each has its x-error-codes");
}

/// Parameters, and the codes each brings to the operations that take it.
const BROUGHT: [(&str, &[&str]); 8] = [
    ("If-Match", &["ConditionNotMet", "MultipleConditionHeadersNotSupported"]),
    ("x-ms-source-if-match", &["SourceConditionNotMet", "UnsatisfiableCondition"]),
    ("x-ms-copy-source", &["CannotVerifyCopySource", "MissingRequiredHeader"]),
    ("x-ms-meta", &["EmptyMetadataKey", "InvalidMetadata", "MetadataTooLarge"]),
    ("x-ms-tags", &["DuplicateTagNames", "EmptyTagName", "InvalidTag", "TagsTooLarge"]),
    ("Content-MD5", &["InvalidMd5", "Md5Mismatch"]),
    ("x-ms-content-crc64", &["Crc64Mismatch", "BothCrc64AndMd5HeaderPresent"]),
    (
        "x-ms-encryption-key",
        &[
            "BlobCustomerSpecifiedEncryptionMismatch",
            "BlobDoesNotUseCustomerSpecifiedEncryption",
            "BlobUsesCustomerSpecifiedEncryption",
        ],
    ),
];

#[test]
fn every_parameter_brings_its_codes() {
    for file in description() {
        for operation in file.text.split("operationId: ").skip(1) {
            let (name, _) = operation.split_once('\n').unwrap();
            let (parameters, _) = operation.split_once("responses:").unwrap();
            let listed = &lists(operation, "x-error-codes:")[0];
            for (parameter, codes) in BROUGHT {
                let taken = parameters.contains(&format!("parameters.yaml#/{parameter}'"));
                for code in codes.iter().filter(|_| taken) {
                    assert!(
                        listed.contains(code),
                        "{name} takes {parameter}, so it answers {code}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_error_code_of_the_table_is_described() {
    let files = description();
    let described: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| {
            ["x-error-codes:", "x-common-error-codes:"].map(|key| lists(&file.text, key))
        })
        .flatten()
        .flatten()
        .collect();
    // The first goes by another name on the wire, the second is of the web endpoint, which has no
    // operations. The third answers only requests of other dialects.
    let silent = [Reason::NotModified, Reason::WebContentNotFound, Reason::ContainerNotEmpty];
    let missing = Reason::ALL.iter().filter(|code| !described.contains(error_row(**code).code));
    let missing: Vec<_> = missing.filter(|code| !silent.contains(code)).collect();
    assert!(missing.is_empty(), "no operation in api-spec/blob can answer {missing:?}");
}

#[test]
fn every_reference_names_something_and_every_part_is_used() {
    let files = description();
    let keys: BTreeSet<String> = files
        .iter()
        .flat_map(|file| {
            let base = file.name.rsplit('/').next().unwrap();
            let top = file.text.lines().filter(|line| !line.starts_with([' ', '#']));
            top.filter_map(|line| line.split_once(':'))
                .map(move |(key, _)| format!("{base}#/{key}"))
        })
        .collect();
    let mut used = BTreeSet::new();
    for file in &files {
        let base = file.name.rsplit('/').next().unwrap();
        for rest in file.text.split("$ref: '").skip(1) {
            let target = rest.split('\'').next().unwrap();
            let target = target.strip_prefix("blob/").unwrap_or(target);
            let target =
                if target.starts_with('#') { format!("{base}{target}") } else { target.to_owned() };
            assert!(keys.contains(&target), "{}: nothing is called {target}", file.name);
            used.insert(target);
        }
    }
    let index = "azure-blob.yaml#/";
    let unused: Vec<&String> =
        keys.difference(&used).filter(|key| !key.starts_with(index)).collect();
    // Only the test of CORS answers names these: they are no operation's own.
    let unused: Vec<_> = unused.into_iter().filter(|k| !k.contains("Access-Control-Ex")).collect();
    assert!(unused.is_empty(), "parts that nothing refers to: {unused:?}");
}
