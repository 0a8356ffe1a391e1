//! Lists of blobs, containers and blocks as clients read them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::protocol::model::list_reply::ContainerItem;
use crate::protocol::model::list_reply::ContainerListing;
use crate::protocol::model::reply::BlockItem;
use crate::types::BlockId;

#[test]
fn blob_lists_are_well_formed_and_keep_every_name() {
    let names = ["a", "b&<>\"'", "tab\tline\nreturn\r", "\u{1}", "\u{fffe}x/", "\u{fffd}", "%41"];
    let mut items: Vec<BlobItem> = names
        .iter()
        .map(|name| BlobItem::Blob {
            name: (*name).to_owned(),
            revision: Revision::Current,
            facts: Box::new(facts()),
        })
        .collect();
    items.push(BlobItem::Uncommitted { name: "u".to_owned() });
    items.push(BlobItem::Prefix { name: "p/\u{7}".to_owned() });
    let listing = BlobListing { items, next: Some("m&1".into()), ..BlobListing::default() };
    let echo = list_echo(
        "/acct/con?restype=container&comp=list&prefix=%26&delimiter=%2F&maxresults=9&include=metadata",
    );
    let response = render(&Reply::Blobs(listing), &echo);
    let body = text(&response);
    assert_eq!(get(&response, "content-length"), body.len().to_string());
    let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
        ServiceEndpoint=\"http://h:1/acct/\" ContainerName=\"con\"><Prefix>&amp;</Prefix>\
        <MaxResults>9</MaxResults><Delimiter>/</Delimiter><Blobs>";
    assert!(body.starts_with(head), "{body}");
    assert!(body.ends_with("</Blobs><NextMarker>bSYx</NextMarker></EnumerationResults>"));
    for part in [
        "<Name>b&amp;&lt;&gt;&quot;'</Name>",
        "<Name Encoded=\"true\">%01</Name>",
        "<Name Encoded=\"true\">%EF%BF%BEx/</Name>",
        "<Name>\u{fffd}</Name>",
        "<Name>%41</Name>",
        "<BlobPrefix><Name Encoded=\"true\">p/%07</Name></BlobPrefix>",
        "<Metadata><k>a&lt;b&amp;c</k></Metadata>",
        "<Etag>0x8DE1</Etag><Content-Length>100</Content-Length>",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
    assert_eq!(
        names_in(body),
        [&names[..3], &["%01", "%EF%BF%BEx/"], &names[5..], &["u", "p/%07"]].concat()
    );
}

#[test]
fn metadata_that_another_dialect_allows_is_shown_as_far_as_it_can_be() {
    let metadata: [(&str, &[u8]); 7] = [
        ("plain", "a<b".as_bytes()),
        ("a-b.c_d", "\u{e9}".as_bytes()),
        ("1st", b"v"),
        ("it's", b"v"),
        ("x-ms-invalid-name", b"v"),
        ("latin", b"caf\xe9"),
        ("noncharacter", "\u{ffff}".as_bytes()),
    ];
    let metadata = metadata.map(|(name, value)| (name.to_owned(), value.to_vec()));
    let facts = BlobFacts { metadata: Metadata::new(metadata).unwrap(), ..facts() };
    let named = Box::new(facts.clone());
    let items =
        vec![BlobItem::Blob { name: "a".to_owned(), revision: Revision::Current, facts: named }];
    let listing = BlobListing { items, ..BlobListing::default() };
    let echo_of_list = list_echo("/acct/con?restype=container&comp=list&include=metadata");
    let response = render(&Reply::Blobs(listing), &echo_of_list);
    let shown = "<Metadata><plain>a&lt;b</plain><a-b.c_d>\u{e9}</a-b.c_d>\
        <x-ms-invalid-name>1st</x-ms-invalid-name><x-ms-invalid-name>it's</x-ms-invalid-name>\
        <x-ms-invalid-name>x-ms-invalid-name</x-ms-invalid-name>\
        <x-ms-invalid-name>latin</x-ms-invalid-name>\
        <x-ms-invalid-name>noncharacter</x-ms-invalid-name></Metadata>";
    let body = text(&response);
    assert!(body.contains(shown), "{body}");
    assert_eq!(names_in(body), ["a"]);

    let reply = Reply::Blob { facts: Box::new(facts), range: None, checksum: None };
    let response = render(&reply, &echo("GET", "/a/b/c"));
    let header = |name: &str| response.headers().get(name).map(http::HeaderValue::as_bytes);
    assert_eq!(header("x-ms-meta-1st"), Some(b"v".as_slice()));
    assert_eq!(header("x-ms-meta-it's"), Some(b"v".as_slice()));
    assert_eq!(header("x-ms-meta-latin"), Some(b"caf\xe9".as_slice()));
}

/// The names a parser finds, references resolved; fails when the document is not well-formed.
#[expect(clippy::wildcard_enum_match_arm, reason = "only names matter here")]
fn names_in(body: &str) -> Vec<String> {
    use quick_xml::Reader;
    use quick_xml::events::Event;
    let mut reader = Reader::from_str(body);
    let (mut names, mut text) = (Vec::new(), None);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) if tag.name().as_ref() == "Name" => text = Some(String::new()),
            Event::Text(piece) => text = text.map(|t| t + &piece),
            Event::GeneralRef(reference) => {
                let resolved = match reference.resolve_char_ref().unwrap() {
                    Some(c) => c.to_string(),
                    None => {
                        quick_xml::escape::resolve_predefined_entity(&reference).unwrap().to_owned()
                    }
                };
                text = text.map(|t| t + &resolved);
            }
            Event::End(tag) if tag.name().as_ref() == "Name" => names.extend(text.take()),
            Event::Eof => return names,
            _ => {}
        }
    }
}

#[test]
fn lists_without_metadata_leave_it_out() {
    let items = vec![BlobItem::Blob {
        name: "a".to_owned(),
        revision: Revision::Current,
        facts: Box::new(facts()),
    }];
    let listing = BlobListing { items, ..BlobListing::default() };
    let echo = list_echo("/acct/con?restype=container&comp=list");
    let response = render(&Reply::Blobs(listing), &echo);
    assert!(!text(&response).contains("<Metadata"), "{}", text(&response));
    assert!(text(&response).ends_with("<NextMarker/></EnumerationResults>"));
}

#[test]
fn a_listed_blob_has_each_property_once() {
    let items = vec![BlobItem::Blob {
        name: "a".to_owned(),
        revision: Revision::Current,
        facts: Box::new(facts()),
    }];
    let listing = BlobListing { items, ..BlobListing::default() };
    let response =
        render(&Reply::Blobs(listing), &list_echo("/acct/con?restype=container&comp=list"));
    for tag in ["<BlobType>", "<AccessTier>", "<AccessTierInferred>", "<LeaseState>"] {
        assert_eq!(text(&response).matches(tag).count(), 1, "{tag} {}", text(&response));
    }
}

/// So many blobs named by number, with a position after each.
fn numbered(count: usize, facts: &BlobFacts) -> BlobListing {
    let item = |number: usize| BlobItem::Blob {
        name: format!("{number:05}"),
        revision: Revision::Current,
        facts: Box::new(facts.clone()),
    };
    let after = |number: usize| format!("after {number:05}").into();
    let items = (0..count).map(item).collect();
    BlobListing { items, after: (0..count).map(after).collect(), ..BlobListing::default() }
}

#[test]
fn a_page_of_much_escaped_metadata_ends_early_and_says_where_to_go_on() {
    let metadata = Metadata::new(vec![("k".to_owned(), "\"".repeat(8000))]).unwrap();
    let heavy = BlobFacts { metadata, ..facts() };
    let echo = list_echo("/acct/con?restype=container&comp=list&include=metadata");
    let response = render(&Reply::Blobs(numbered(300, &heavy)), &echo);
    let body = text(&response);
    assert!((4 << 20..(4 << 20) + (64 << 10)).contains(&body.len()), "{}", body.len());
    let shown = body.matches("<Blob>").count();
    assert_eq!(shown, 87, "of 48 KiB each");
    // "after 00086"
    assert!(
        body.ends_with("</Blobs><NextMarker>YWZ0ZXIgMDAwODY</NextMarker></EnumerationResults>")
    );

    let plain = list_echo("/acct/con?restype=container&comp=list");
    let response = render(&Reply::Blobs(numbered(300, &heavy)), &plain);
    assert!(
        text(&response).ends_with("<NextMarker/></EnumerationResults>"),
        "nothing is shown of it"
    );
    let whole = render(&Reply::Blobs(numbered(5_000, &facts())), &echo);
    let body = text(&whole);
    assert_eq!(body.matches("<Blob>").count(), 5_000, "in {} bytes", body.len());
    assert!(body.ends_with("<NextMarker/></EnumerationResults>"));
}

#[test]
fn a_page_of_containers_ends_early_too() {
    let metadata = Metadata::new(vec![("k".to_owned(), "<".repeat(8000))]).unwrap();
    let facts = ContainerFacts {
        has_object_lock: false,
        deleted: None,
        created: Timestamp::ZERO,
        owner: None,
        region: None,
        change: change(),
        metadata,
        public_access: PublicAccess::Private,
        lease: LeaseFacts { state: LeaseState::Available, infinite: false },
        encryption_scope: None,
    };
    let item = |number| ContainerItem { name: format!("{number:05}"), facts: facts.clone() };
    let listing = ContainerListing {
        items: (0..300).map(item).collect(),
        after: (0..300).map(|number| format!("{number:05}").into()).collect(),
        next: Some("the end".into()),
    };
    let response =
        render(&Reply::Containers(listing), &list_echo("/acct?comp=list&include=metadata"));
    let body = text(&response);
    let shown = body.matches("<Container>").count();
    assert!((120..135).contains(&shown), "{shown} of 32 KiB each");
    let marker = URL_SAFE_NO_PAD.encode(format!("{:05}", shown - 1));
    assert!(body.ends_with(&format!("<NextMarker>{marker}</NextMarker></EnumerationResults>")));
}

#[test]
fn container_lists_quote_their_tags() {
    let facts = ContainerFacts {
        has_object_lock: false,
        deleted: None,
        created: Timestamp::ZERO,
        owner: None,
        region: None,
        change: change(),
        metadata: Metadata::default(),
        public_access: PublicAccess::Container,
        lease: LeaseFacts { state: LeaseState::Breaking, infinite: false },
        encryption_scope: Some(EncryptionScope { name: "own".to_owned(), deny_override: true }),
    };
    let items = vec![ContainerItem { name: "con".to_owned(), facts }];
    let listing = ContainerListing { items, after: Vec::new(), next: None };
    let echo = list_echo("/acct?comp=list&include=metadata&prefix=c");
    let response = render(&Reply::Containers(listing), &echo);
    let body = text(&response);
    for part in [
        "<Prefix>c</Prefix><Containers><Container><Name>con</Name><Properties>",
        "<Etag>&quot;0x8DE1&quot;</Etag>",
        "<LeaseStatus>locked</LeaseStatus><LeaseState>breaking</LeaseState><PublicAccess>container",
        "<DefaultEncryptionScope>own</DefaultEncryptionScope>",
        "<DenyEncryptionScopeOverride>true</DenyEncryptionScopeOverride>",
        "<Metadata/>",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

#[test]
fn block_lists_show_what_was_asked() {
    let block = |id: &[u8], len| BlockItem { id: BlockId::from_bytes(id).unwrap(), len };
    let reply = Reply::BlockList {
        committed_blob: Some((change(), 30)),
        committed: Some(vec![block(b"aaa", 30)]),
        uncommitted: Some(Vec::new()),
    };
    let response = render(&reply, &echo("GET", "/a/b/c?comp=blocklist"));
    assert_eq!(get(&response, "x-ms-blob-content-length"), "30");
    assert_eq!(get(&response, "etag"), "\"0x8DE1\"");
    assert_eq!(
        text(&response),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><CommittedBlocks><Block><Name>YWFh</Name>\
         <Size>30</Size></Block></CommittedBlocks><UncommittedBlocks></UncommittedBlocks></BlockList>"
    );
}
