use std::io::Write;

use clap::Parser;

use super::*;
use crate::types::AccountName;

const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    settings: Settings,
}

fn parse(args: &[&str]) -> Settings {
    Line::try_parse_from(["serve"].iter().chain(args)).unwrap().settings
}

fn load(args: &[&str], file: &str) -> Result<Config, ConfigError> {
    let mut written = tempfile::NamedTempFile::new().unwrap();
    written.write_all(file.as_bytes()).unwrap();
    Config::load(parse(args), Some(written.path()))
}

fn refusal(args: &[&str], file: &str) -> String {
    load(args, file).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_a_development_machine() {
    let config = Config::load(Settings::default(), None).unwrap();
    assert_eq!(config.data, [PathBuf::from("./blockyard-data")]);
    assert_eq!(config.blob_listen.to_string(), "127.0.0.1:10000");
    assert_eq!(config.admin_listen.to_string(), "127.0.0.1:10080");
    assert_eq!(config.accounts, [AccountConfig::development()]);
    assert!(config.accounts[0].keys().is_ok());
    assert_eq!((config.initial_partitions, config.journal_bytes), (1, 64 << 20));
    assert_eq!(
        f64::from(config.split_requests),
        crate::manager::PolicyConfig::default().hot_requests
    );
    assert_eq!(config.first_byte, Duration::from_secs(5));
    assert_eq!(config.response_stall, Duration::from_secs(60));
    assert_eq!(config.response_rate_min, 1 << 10, "1 KiB a second");
    assert_eq!(config.request_rate_min, 1 << 10, "1 KiB a second");
    assert_eq!((config.log.as_str(), config.log_format), ("info", LogFormat::Text));
}

#[test]
fn flag_wins_over_file_and_file_over_default() {
    let file = "initial_partitions = 3\ndrain_seconds = 4\n";
    let config = load(&["--initial-partitions", "5"], file).unwrap();
    assert_eq!(config.initial_partitions, 5);
    assert_eq!(config.drain, Duration::from_secs(4));
    assert_eq!(config.body_idle, Duration::from_secs(60));
}

#[test]
fn lists_of_a_flag_replace_those_of_the_file() {
    let file = format!("data = ['a', 'b']\naccount = ['one:{KEY}']\n");
    let config = load(&["--data", "c", "--data", "d"], &file).unwrap();
    assert_eq!(config.data, [PathBuf::from("c"), PathBuf::from("d")]);
    assert_eq!(config.accounts[0].name().as_str(), "one");
}

fn s3_of_the_file() -> S3Config {
    S3Config {
        listen: Some("0.0.0.0:3".parse().unwrap()),
        account: Some(AccountName::new("one").unwrap()),
        region: "eu-1".to_owned(),
    }
}

fn otlp_of_the_file() -> OtlpConfig {
    OtlpConfig { endpoint: "http://c:4318".to_owned(), sample: "0.25".parse().unwrap() }
}

#[test]
fn file_takes_every_setting() {
    let file = format!(
        "data = ['d']\nblob_listen = '0.0.0.0:1'\ns3_listen = '0.0.0.0:3'\ns3_account = 'one'\ns3_region = 'eu-1'\nadmin_listen = '[::1]:2'\nadmin_tls = true\nadmin_plain = true\nadmin_token_file = 't'\nmaster_key_file = '/k/m'\naccount = ['one:{KEY}:{KEY}']\nuser = ['one/u:KEYID:{KEY}']\n\
         blob_domain = ['Example.org.']\nallow_host = ['Azurite', '*']\nhttps_only = true\npublic_access = false\noidc = ['issuer=i;jwks=k']\ntls_cert = 'c.pem'\ntls_key = 'k.pem'\ninitial_partitions = 16\nsplit_requests = 6\njournal_bytes = 1_048_576\n\
         block_cache_bytes = 2_097_152\nmemtable_bytes = 3_145_728\nreserve_bytes = 7\n\
         scrub_bytes_per_second = 0\nconnections_max = 8\npeer_connections_max = 5\nfirst_byte_seconds = 4\nrequests_max = 9\naccount_requests_per_second = 12\nbody_idle_seconds = 10\nrequest_min_rate = 14\nresponse_stall_timeout = 13\nresponse_min_rate = 0\n\
         copy_source_allow = ['*.example']\ncopy_source_deny = ['10.0.0.0/8', '*']\ncopy_source_bytes_per_second_min = 13\n\
         rehydration_seconds = 11\nretention_day = 12\nlast_access_time = 'on'\ndevelopment_tokens = 'on'\ndrain_seconds = 0\n\
         audit_log = '-'\naudit_requests = true\naudit_log_bytes = 65_536\naudit_log_files = 2\notlp_endpoint = 'http://c:4318'\notlp_sample = 0.25\nlog = 'warn,blockyard::index=debug'\nlog_format = 'json'\n"
    );
    let config = load(&[], &file).unwrap();
    let expected = Config {
        add_disk: Vec::new(),
        without_disk: Vec::new(),
        data: vec!["d".into()],
        blob_listen: "0.0.0.0:1".parse().unwrap(),
        s3: s3_of_the_file(),
        admin_listen: "[::1]:2".parse().unwrap(),
        admin_tls: true,
        admin_plain: true,
        admin_token_file: "t".into(),
        master_key_file: "/k/m".into(),
        accounts: vec![format!("one:{KEY}:{KEY}").parse().unwrap()],
        development_account: None,
        development_tokens: true,
        unserved: Vec::new(),
        users: vec![format!("one/u:KEYID:{KEY}").parse().unwrap()],
        blob_domains: vec!["example.org".to_owned()],
        allow_hosts: vec!["azurite".to_owned(), "*".to_owned()],
        https_only: true,
        public_access: Some(false),
        oidc: vec!["issuer=i;jwks=k".parse().unwrap()],
        tls: TlsSource::Files { cert: "c.pem".into(), key: "k.pem".into() },
        initial_partitions: 16,
        index_hosts: 1,
        split_requests: 6,
        journal_bytes: 1 << 20,
        block_cache_bytes: 2 << 20,
        memtable_bytes: 3 << 20,
        reserve_bytes: Some(7),
        scrub_bytes_per_second: 0,
        connections_max: 8,
        peer_connections_max: Some(5),
        first_byte: Duration::from_secs(4),
        requests_max: 9,
        account_requests_per_second: 12,
        body_idle: Duration::from_secs(10),
        request_rate_min: 14,
        response_stall: Duration::from_secs(13),
        response_rate_min: 0,
        copy_source: Rules {
            allow: vec!["*.example".parse().unwrap()],
            deny: vec!["10.0.0.0/8".parse().unwrap(), "*".parse().unwrap()],
        },
        copy_source_bytes_per_second_min: 13,
        rehydration: Duration::from_secs(11),
        retention_day: Duration::from_secs(12),
        last_access: true,
        drain: Duration::ZERO,
        audit_log: audit_log::Settings {
            to: Some(audit_log::Destination::Stdout),
            requests: true,
            bytes_max: 64 << 10,
            files: 2,
        },
        otlp: Some(otlp_of_the_file()),
        log: "warn,blockyard::index=debug".to_owned(),
        log_format: LogFormat::Json,
    };
    assert_eq!(config, expected);
}

#[test]
fn issuer_given_twice_is_refused_by_name() {
    let of = |name: &str, account: &str| format!("issuer={name};jwks=k;account={account}");
    let (one, two) = (of("https://a.example/t", "one"), of("https://a.example/t", "two"));
    let refused = refusal(&["--oidc", &one, "--oidc", &two], "");
    assert!(refused.contains("https://a.example/t"), "{refused}");
    let refused = refusal(&[], &format!("oidc = ['{one}', '{two}']"));
    assert!(refused.contains("https://a.example/t"), "{refused}");
    let other = of("https://b.example/t", "two");
    assert_eq!(load(&["--oidc", &one, "--oidc", &other], "").unwrap().oidc.len(), 2);
}

#[test]
fn unknown_fields_are_refused_by_name() {
    let text = refusal(&[], "blob_lisen = '127.0.0.1:1'\n");
    assert!(text.contains("unknown field `blob_lisen`"), "{text}");
    let text = refusal(&[], "initial_partitions = 'many'\n");
    assert!(text.contains("initial_partitions"), "{text}");
}

#[test]
fn missing_file_is_named() {
    let error = Config::load(Settings::default(), Some(Path::new("/none/such.toml"))).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/none/such.toml") && text.contains("--config"), "{text}");
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let cases = [
        ("initial_partitions = 0", "initial_partitions must be 1 to 128, not 0"),
        ("initial_partitions = 129", "initial_partitions must be 1 to 128, not 129"),
        ("journal_bytes = 1", "journal_bytes must be 256KiB to 16GiB, not 1"),
        ("block_cache_bytes = 0", "block_cache_bytes must be"),
        ("memtable_bytes = 0", "memtable_bytes must be"),
        ("journal_bytes = '1K'", "journal_bytes must be 256KiB to 16GiB, not 1KiB"),
        ("journal_bytes = 'much'", "`much` is not a size"),
        ("blob_listen = 'here'", "localhost:10000"),
        ("admin_tls = true", "--admin-tls needs a certificate"),
        ("admin_listen = '0.0.0.0:1'", "--admin-plain"),
        ("admin_listen = 'unix:'", "unix:/path"),
        ("https_only = true", "--https-only needs a certificate"),
        ("connections_max = 0", "connections_max must be"),
        ("peer_connections_max = 0", "peer_connections_max must be"),
        ("first_byte_seconds = 0", "first_byte_seconds must be"),
        ("requests_max = 0", "requests_max must be"),
        ("body_idle_seconds = 0", "body_idle_seconds must be"),
        ("response_stall_timeout = 0", "response_stall_timeout must be 1 to 3600, not 0"),
        ("drain_seconds = 3601", "drain_seconds must be"),
    ];
    for (file, expected) in cases {
        let text = refusal(&[], file);
        assert!(text.contains(expected), "{file}: {text}");
    }
}

#[test]
fn development_account_stays_on_loopback() {
    for listen in ["0.0.0.0:10000", "[::]:10000", "192.0.2.7:10000"] {
        assert_eq!(load(&["--blob-listen", listen], "").unwrap().accounts, []);
        // Also under another name, also as a second key.
        for account in ["devstoreaccount1:", "other:", &format!("other:{KEY}:")] {
            let account = format!("{account}{}", super::super::accounts::DEVELOPMENT_KEY);
            let text = refusal(&["--blob-listen", listen, "--account", &account], "");
            assert!(text.contains("is for development"), "{text}");
        }
        let own = format!("one:{KEY}");
        assert!(load(&["--blob-listen", listen, "--account", &own], "").is_ok());
    }
    let s3 = ["--s3-listen", "0.0.0.0:9000"];
    assert_eq!(load(&s3, "").unwrap().accounts, [], "the listener of S3 serves it too");
    let public = format!("devstoreaccount1: {}", super::super::accounts::DEVELOPMENT_KEY);
    assert!(refusal(&[s3[0], s3[1], "--account", &public], "").contains("0.0.0.0:9000"));
    for listen in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(load(&["--blob-listen", listen], "").is_ok(), "{listen}");
    }
}

#[test]
fn wrong_accounts_are_refused_without_showing_keys() {
    let secret = "c2VjcmV0c2VjcmV0";
    let cases = [
        ("nocolon", "NAME:BASE64KEY"),
        ("UPPER:QUFB", "`UPPER` is not an account name"),
        (&format!("one:{secret}"), "at least 16 bytes"),
        (&format!("one:{secret}!"), "not base64"),
        (&format!("one:{KEY}:{KEY}:{KEY}"), "one or two keys"),
        ("one:", "the key is empty"),
    ];
    for (account, expected) in cases {
        let text = account.parse::<AccountConfig>().unwrap_err().to_string();
        assert!(text.contains(expected), "{account}: {text}");
        assert!(!text.contains(secret), "{text}");
        let text = refusal(&["--account", account], "");
        assert!(text.contains(expected) && !text.contains(secret), "{text}");
        let text = refusal(&[], &format!("account = ['{account}']"));
        assert!(text.contains(expected) && !text.contains(secret), "{text}");
    }
    let text = refusal(&[], &format!("account = ['one:{KEY}', 'one:{KEY}']"));
    assert!(text.contains("configured twice"), "{text}");
    let account: AccountConfig = format!("one:{KEY}").parse().unwrap();
    assert!(!format!("{account:?}").contains("AAAA"));
}

#[test]
fn tls_is_off_own_or_of_files() {
    assert_eq!(load(&[], "").unwrap().tls, TlsSource::Off);
    assert_eq!(load(&["--tls", "auto"], "").unwrap().tls, TlsSource::Auto);
    let files = "tls_cert = 'c'\ntls_key = 'k'\n";
    assert_eq!(load(&["--tls", "off"], files).unwrap().tls, TlsSource::Off);
    assert!(refusal(&["--tls", "auto"], files).contains("leave out --tls"));
    for half in ["tls_cert = 'c'\n", "tls_key = 'k'\n"] {
        assert!(refusal(&[], half).contains("--tls auto"), "{half}");
    }
}

#[test]
fn contradictions_are_refused() {
    let cases = [
        ("data = ['a', './a']", "given twice"),
        ("data = ['']", "no name"),
        ("blob_listen = '127.0.0.1:5'\nadmin_listen = '127.0.0.1:5'", "both 127.0.0.1:5"),
        ("blob_listen = '127.0.0.1:5'\ns3_listen = '127.0.0.1:5'", "s3_listen and another"),
        ("s3_account = 'A'", "s3_account `A`"),
        ("s3_region = 'EU'", "s3_region `EU`"),
        ("log = 'blockyard=loud'", "log:"),
    ];
    for (file, expected) in cases {
        let text = refusal(&[], file);
        assert!(text.contains(expected), "{file}: {text}");
    }
}

#[test]
fn master_key_lies_beside_the_first_data_directory_and_never_inside_one() {
    let file = |toml: &str| load(&[], toml);
    let path = file("data = ['/data/one/', '/data/two']").unwrap().master_key_file;
    assert_eq!(path, Path::new("/data/one.key"));
    let path = file("data = ['/a/../one']\nmaster_key_file = '/keys/one'").unwrap();
    assert_eq!(path.master_key_file, Path::new("/keys/one"));
    for inside in ["/two/key", "/two/./a/key", "/two"] {
        let error = file(&format!("data = ['/one', '/two']\nmaster_key_file = '{inside}'"));
        assert!(matches!(error, Err(ConfigError::MasterKeyInside { .. })), "{inside}: {error:?}");
    }
    assert!(matches!(file("data = ['/']"), Err(ConfigError::MasterKeyPlace(_))));
    assert!(file("data = ['/one']\nmaster_key_file = '/onekey'").is_ok());
}
