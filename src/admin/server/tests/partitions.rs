//! The partitions' paths over a real index of two hosts.

use serde_json::Value;
use serde_json::json;

use super::*;
use crate::admin::partitions::PartitionStore;
use crate::index;
use crate::index::CreateAccount;
use crate::index::IndexServer;
use crate::index::LocalPartitions;
use crate::index::engine::testing::World;
use crate::types::BlobKey;
use crate::types::BlobName;
use crate::types::CannedAcl;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::ContainerName;
use crate::types::RoutingKey;

const CONTAINER: ContainerId = ContainerId::new(1 << 60);

/// An account `photos` with a container `raw` in an index of two hosts.
pub(super) struct Rig {
    pub(super) store: PartitionStore,
    router: Arc<Router>,
    index: Arc<IndexServer>,
}

pub(super) async fn rig(env: &Env) -> Rig {
    let world = World::empty();
    let deps = index::Dependencies { machine: Arc::new(index::Objects), ..world.deps() };
    let coordinator = Arc::clone(&deps.coordinator);
    let index = Arc::new(IndexServer::open(vec![deps; 2], world.config).await.unwrap());
    let host = Arc::clone(&index) as Arc<dyn IndexHost>;
    let router = Arc::new(Router::new(host, coordinator, env.clone()).await.unwrap());
    let name = AccountName::new("photos").unwrap();
    let create = CreateAccount { name: name.clone(), id: AccountId::new(7), anonymous: false };
    let record = router.tell(create).await.unwrap();
    let create = index::CreateContainer {
        account: AccountId::new(7),
        name: ContainerName::new("raw").unwrap(),
        id: CONTAINER,
        collation: Collation::Utf16,
        metadata: crate::types::Metadata::default(),
        public_access: crate::types::PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    };
    router.write(Write::CreateContainer(create)).await.unwrap();
    let keys = AccountKeys::new(&["AAAAAAAAAAAAAAAAAAAAAAAAAAA="]).unwrap();
    let secrets = Secrets::known(&env.rand);
    let account = Account::new(name, keys, record, &secrets).unwrap();
    let known = Accounts::new(vec![account], secrets);
    let (at, clock) = (Arc::clone(&router), Arc::clone(&env.clock));
    let control = Arc::new(LocalPartitions::alone(Arc::clone(&index)));
    let store = PartitionStore::new(control, known, at, clock);
    Rig { store, router, index }
}

impl Rig {
    fn key(name: &str) -> BlobKey {
        let name = BlobName::new(name).unwrap();
        BlobKey {
            account: AccountId::new(7),
            container: CONTAINER,
            collation: Collation::Utf16,
            name,
        }
    }

    async fn put(&self, name: &str) {
        let put = index::PutBlob {
            key: Self::key(name),
            guard: index::Guard::default(),
            properties: crate::types::BlobProperties::default(),
            metadata: crate::types::Metadata::default(),
            kind: crate::types::NewKind::Block,
            tags: crate::types::Tags::default(),
            content: index::NewContent::Inline(bytes::Bytes::from_static(b"x")),
            crc64: crate::types::Crc64::of(b"x"),
            tier: None,
            fields: index::NewBlobFields::default(),
        };
        self.router.write(Write::PutBlob(put)).await.unwrap();
    }

    /// The names before which a partition begins.
    fn borders(&self) -> Vec<String> {
        let status = self.index.status();
        let of = RoutingKey::container_range(AccountId::new(7), CONTAINER);
        let inside = status.iter().filter(|p| of.contains(p.range.low().as_bytes()));
        inside
            .map(|p| {
                let end = p.range.low().as_bytes().slice(16..);
                let text = end.strip_suffix(&[0, 1]).unwrap_or(&end);
                String::from_utf8(text.to_vec()).unwrap()
            })
            .collect()
    }
}

struct Both {
    served: Served,
    rig: Rig,
}

async fn both() -> Both {
    both_of(serve()).await
}

async fn both_of(served: Served) -> Both {
    let rig = rig(&served.env).await;
    let mut registry = Registry::default();
    let control = Control {
        accounts: accounts(&served.env).await,
        trace: Trace::default(),
        faults: Faults::new(served.env.clone(), &mut registry),
        partitions: Arc::new(OnceLock::from(rig.store.clone())),
    };
    served.state.control.set(control).unwrap();
    Both { served, rig }
}

impl Both {
    async fn list(&self) -> Value {
        let (status, list) = self.served.command("GET", "/admin/partitions", "").await;
        assert_eq!(status, 200, "{list}");
        list
    }

    async fn done(&self, what: &str, body: Value) -> Value {
        let path = format!("/admin/partitions/{what}");
        let (status, done) = self.served.command("POST", &path, &body.to_string()).await;
        assert_eq!(status, 200, "{what} {body}: {done}");
        done
    }

    async fn refused(&self, what: &str, body: Value) -> (u16, String, String) {
        let path = format!("/admin/partitions/{what}");
        let (status, refused) = self.served.command("POST", &path, &body.to_string()).await;
        let text = |name: &str| refused["error"][name].as_str().unwrap().to_owned();
        (status, text("code"), text("message"))
    }

    async fn end(self) {
        self.rig.index.shutdown().await;
        self.served.env.tasks.shutdown().await;
    }
}

#[tokio::test]
async fn partitions_are_split_moved_merged_and_shown_by_name() {
    let both = both().await;
    let before = both.list().await;
    assert_eq!((before["hosts"].as_u64(), before["latest_change"].as_u64()), (Some(2), Some(0)));
    assert_eq!(before["partitions"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&before["partitions"][0]["from"], &before["partitions"][0]["to"]),
        (&json!(""), &Value::Null)
    );

    let at = json!({ "at": ["photos/raw/m", "photos/raw/", "photos"] });
    let split = both.done("split", at).await;
    let ids: Vec<u64> = serde_json::from_value(split["partitions"].clone()).unwrap();
    assert_eq!(ids.len(), 4);
    let list = both.list().await;
    let column = |list: &Value, name: &str| -> Vec<Value> {
        list["partitions"].as_array().unwrap().iter().map(|p| p[name].clone()).collect()
    };
    assert_eq!(column(&list, "from"), ["", "photos", "photos/raw/", "photos/raw/m"]);
    assert_eq!(column(&list, "to")[..3], ["photos", "photos/raw/", "photos/raw/m"]);
    assert_eq!(column(&list, "low")[3], "00000000000000071000000000000000".to_owned() + "6d");
    assert_eq!(column(&list, "id"), ids.iter().map(|id| json!(id)).collect::<Vec<_>>());

    both.done("move", json!({ "partition": ids[3], "host": 1 })).await;
    let merged = both.done("merge", json!({ "partitions": [ids[3], ids[2]] })).await;
    let (_, news) = both.served.command("GET", "/admin/partitions?after=1", "").await;
    let kinds: Vec<_> = news["changes"].as_array().unwrap().iter().map(|c| &c["kind"]).collect();
    // A merge brings its partitions together first.
    assert_eq!(kinds, ["move", "move", "merge"], "{news}");
    assert_eq!(news["changes"][0]["host"], 1);
    assert_eq!(news["changes"][2]["from"], json!([ids[2], ids[3]]));
    assert_eq!(news["changes"][2]["to"], merged["partitions"]);
    assert_eq!(news["latest_change"], 4);
    assert!(news["changes"][2]["pause_ms"].as_f64().is_some());
    both.end().await;
}

#[tokio::test]
async fn every_change_of_the_map_has_a_line() {
    let kept = Kept::new();
    let both = both_of(serve_with_log(kept.log())).await;
    let logged = |operation: &str, resource: String, detail: Value| {
        let lines = kept.changes();
        let shown: Vec<_> = lines.iter().map(about).collect();
        assert_eq!(shown, [("partition_map".into(), operation.into(), resource)]);
        assert_eq!(lines[0].get("detail").unwrap_or(&Value::Null), &detail, "{operation}");
    };
    let ids =
        |made: &Value| -> Vec<u64> { serde_json::from_value(made["partitions"].clone()).unwrap() };
    let split = ids(&both.done("split", json!({ "at": ["photos/raw/", "photos/raw/m"] })).await);
    logged("SplitPartition", "photos/raw/,photos/raw/m".into(), json!({ "ways": null }));
    both.done("move", json!({ "partition": split[2], "host": 1 })).await;
    logged("MovePartition", split[2].to_string(), json!({ "host": 1 }));
    let striped = ids(&both.done("stripe", json!({ "partition": split[1], "stripes": 2 })).await);
    logged("StripePartition", split[1].to_string(), json!({ "stripes": 2 }));
    let whole = ids(&both.done("unstripe", json!({ "partition": striped[1] })).await);
    logged("UnstripePartition", striped[1].to_string(), Value::Null);
    both.done("merge", json!({ "partitions": [split[0], whole[0]] })).await;
    logged("MergePartitions", format!("{},{}", split[0], whole[0]), Value::Null);
    let prepare = json!({ "container": "photos/raw", "prefix": "next/", "ways": 4 });
    both.done("prepare", prepare).await;
    let detail = json!({ "prefix": "next/", "ways": 4, "spread": false });
    logged("PreparePartitions", "photos/raw".into(), detail);
    both.end().await;
}

#[tokio::test]
async fn a_partition_is_cut_by_its_rows() {
    let both = both().await;
    let only = both.list().await["partitions"][0]["id"].clone();
    for number in 0..100 {
        both.rig.put(&format!("n{number:03}")).await;
    }
    let split = both.done("split", json!({ "partition": only, "ways": 4 })).await;
    assert_eq!(split["partitions"].as_array().unwrap().len(), 4);
    let borders = both.rig.borders();
    // 102 rows: the account's and the container's lie before the blobs.
    assert_eq!(borders, ["n024", "n049", "n075"]);
    both.end().await;
}

#[tokio::test]
async fn a_prefix_is_prepared_evenly_or_like_a_sibling() {
    let both = both().await;
    let prepare = json!({ "container": "photos/raw", "prefix": "step-0900/", "ways": 4 });
    let made = both.done("prepare", prepare.clone()).await;
    assert_eq!(
        (made["partitions"].as_array().unwrap().len(), made["changes"].as_u64()),
        (4, Some(1))
    );
    let expected = ["step-0900/", "step-0900/9", "step-0900/i", "step-0900/r", "step-09000"];
    assert_eq!(both.rig.borders(), expected);
    let again = both.done("prepare", prepare).await;
    assert_eq!((&again["partitions"], again["changes"].as_u64()), (&made["partitions"], Some(0)));

    for number in 0..40 {
        both.rig.put(&format!("step-0800/rank-{number:02}")).await;
    }
    let like = json!({
        "container": "photos/raw/", "prefix": "step-1000/", "ways": 4, "like": "step-0800/", "spread": true
    });
    let made = both.done("prepare", like).await;
    let ranks = [10, 20, 30].map(|rank| format!("step-1000/rank-{rank}"));
    let mut expected: Vec<String> = expected.map(str::to_owned).into();
    expected.push("step-1000/".to_owned());
    expected.extend(ranks);
    expected.push("step-10000".to_owned());
    assert_eq!(both.rig.borders(), expected);
    let ids: Vec<u64> = serde_json::from_value(made["partitions"].clone()).unwrap();
    let status = both.rig.index.status();
    let hosts =
        ids.iter().map(|id| status.iter().find(|p| p.id.get() == *id).unwrap().host.number());
    assert_eq!(hosts.collect::<Vec<_>>(), [0, 1, 0, 1]);

    let many = json!({ "container": "photos/raw", "prefix": "many/", "ways": 50, "characters": "0123456789" });
    let made = both.done("prepare", many).await;
    assert_eq!(
        (made["partitions"].as_array().unwrap().len(), made["changes"].as_u64()),
        (50, Some(4))
    );
    assert!(both.rig.borders().contains(&"many/02".to_owned()));
    both.end().await;
}

#[tokio::test]
async fn what_cannot_be_done_says_what_to_do() {
    let both = both().await;
    let only = both.list().await["partitions"][0]["id"].clone();
    both.done("split", json!({ "at": ["photos/raw"] })).await;
    let list = both.list().await;
    let ids: Vec<&Value> =
        list["partitions"].as_array().unwrap().iter().map(|p| &p["id"]).collect();
    let prepare = |more: Value| {
        let mut body = json!({ "container": "photos/raw", "ways": 4 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let cases = [
        ("split", json!({ "at": ["nobody/raw/x"] }), 404, "NoSuchAccount", "account list"),
        ("split", json!({ "at": ["photos/none/x"] }), 404, "NoSuchContainer", "make it first"),
        ("split", json!({ "at": ["photos/$containers/x"] }), 400, "Invalid", "$containers"),
        ("split", json!({ "at": ["photos/raw"] }), 409, "AlreadyBorder", "photos/raw"),
        (
            "split",
            json!({ "at": ["photos", "photos/raw/x"] }),
            409,
            "SeveralPartitions",
            "one at a time",
        ),
        ("split", json!({ "at": [] }), 400, "Invalid", "`ways`"),
        ("split", json!({ "at": ["photos/raw/x"], "partition": 1 }), 400, "Invalid", "either"),
        (
            "split",
            json!({ "partition": only, "ways": 2 }),
            404,
            "NoSuchPartition",
            "partitions list",
        ),
        ("split", json!({ "partition": ids[1], "ways": 2 }), 409, "TooFewKeys", "--at"),
        ("split", json!({ "partition": ids[1], "ways": 17 }), 400, "Invalid", "2 to 16"),
        ("split", json!({ "where": 1 }), 400, "Invalid", "where"),
        ("merge", json!({ "partitions": [ids[0]] }), 409, "NotNeighbours", "side by side"),
        ("merge", json!({ "partitions": [ids[0], 99] }), 404, "NoSuchPartition", "partitions list"),
        ("move", json!({ "partition": ids[0], "host": 2 }), 404, "NoSuchHost", "--index-hosts"),
        ("move", json!({ "partition": 99, "host": 1 }), 404, "NoSuchPartition", "partitions list"),
        ("prepare", prepare(json!({ "ways": 1 })), 400, "Invalid", "2 to 256"),
        ("prepare", prepare(json!({ "like": "none/" })), 409, "NoSibling", "none/"),
        ("prepare", prepare(json!({ "characters": "a" })), 400, "Invalid", "two or more"),
        ("prepare", prepare(json!({ "container": "photos" })), 400, "Invalid", "ACCOUNT/CONTAINER"),
    ];
    for (what, body, status, code, words) in cases {
        let shown = format!("{what} {body}");
        let refused = both.refused(what, body).await;
        assert_eq!((refused.0, refused.1.as_str()), (status, code), "{shown}: {refused:?}");
        assert!(refused.2.contains(words), "{shown}: {refused:?}");
    }
    let keys: Vec<_> = (0..16).map(|n| format!("photos/raw/n{n:02}")).collect();
    assert_eq!(both.refused("split", json!({ "at": keys })).await.1, "BadKeys");
    assert_eq!(both.served.command("GET", "/admin/partitions?after=x", "").await.0, 400);
    assert_eq!(both.list().await["latest_change"], 1, "nothing changed");
    both.end().await;
}

#[tokio::test]
async fn bounds_without_names_are_numbers_that_can_be_given_back() {
    let both = both().await;
    both.done("split", json!({ "at": ["#9/#5/x", "photos/#77"] })).await;
    let list = both.list().await;
    let froms: Vec<_> = list["partitions"].as_array().unwrap().iter().map(|p| &p["from"]).collect();
    assert_eq!(froms, ["", "photos/#77/", "#9/#5/x"]);
    for from in &froms[1..] {
        let refused = both.refused("split", json!({ "at": [from] })).await;
        assert_eq!(refused.1, "AlreadyBorder", "{from}");
    }
    both.end().await;
}

#[tokio::test]
async fn the_page_is_served_to_all_and_the_data_is_not() {
    let both = both().await;
    let (status, page) = both.served.get("/partitions").await;
    assert_eq!(status, 200);
    assert!(page.contains("<title>Blockyard partitions</title>") && !page.contains("photos"));
    assert_eq!(both.served.get("/admin/partitions").await.0, 401);
    assert_eq!(both.served.ask("POST", "/admin/partitions/split", "", "{}").await.0, 401);
    both.end().await;
}

#[tokio::test(start_paused = true)]
async fn history_is_kept_without_a_reader_and_returned_in_parts() {
    let both = both().await;
    let stop = both.served.env.tasks.stopping();
    both.rig.store.keep_history(&both.served.env, stop);
    let ask = async |query: &str| {
        let path = format!("/admin/partitions/history{query}");
        let (status, answer) = both.served.command("GET", &path, "").await;
        assert_eq!(status, 200, "{answer}");
        answer
    };
    tokio::time::sleep(Duration::from_secs(3)).await;
    both.done("split", json!({ "at": ["photos/raw/m"] })).await;
    for number in 0..20 {
        both.rig.put(&format!("n{number:02}")).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    let all = ask("").await;
    assert_eq!(
        (&all["after"], &all["window_s"], &all["every_s"]),
        (&Value::Null, &json!(600), &json!(2.0))
    );
    let samples = all["samples"].as_array().unwrap();
    assert!(samples.len() >= 3 && all["began"] == samples[0]["at"], "{all}");
    let stays = all["stays"].as_array().unwrap();
    let froms: Vec<&str> = stays.iter().map(|stay| stay["from"].as_str().unwrap()).collect();
    assert_eq!(froms, ["", "", "photos/raw/m"], "the whole, and its parts");
    assert!(stays[0]["until"].is_u64() && stays[1]["until"].is_null());
    assert_eq!(stays[0]["until"], stays[1]["since"]);
    let busy = samples.iter().flat_map(|sample| sample["rates"].as_array().unwrap());
    assert!(busy.clone().any(|rate| rate[0] == stays[2]["number"] && rate[1].as_f64() > Some(1.0)));
    assert_eq!(all["containers"]["complete"], true);
    assert_eq!(all["containers"]["all"][0][1], "photos/raw");

    let last = samples.last().unwrap()["number"].as_u64().unwrap();
    let names = &all["names"];
    tokio::time::sleep(Duration::from_secs(2)).await;
    let part = ask(&format!("?after={last}&names={names}")).await;
    assert_eq!(part["after"], last);
    assert!(!part["samples"].as_array().unwrap().is_empty());
    assert_eq!((&part["stays"], &part["containers"]), (&json!([]), &Value::Null));
    assert_eq!(both.served.command("GET", "/admin/partitions/history?since=1", "").await.0, 400);
    let list = both.list().await;
    assert_eq!(
        (&list["changes"][0]["low"], &list["changes"][0]["high"]),
        (&json!(""), &Value::Null)
    );
    both.end().await;
}
