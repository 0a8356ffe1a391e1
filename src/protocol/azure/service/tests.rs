use super::*;

fn read(inner: &str) -> Result<ServicePropertiesChange, Refusal> {
    read_properties(
        format!("<StorageServiceProperties>{inner}</StorageServiceProperties>").as_bytes(),
    )
}

fn refused(inner: &str) -> Reason {
    read(inner).expect_err(inner).reason
}

const RULE: &str = "<CorsRule><AllowedOrigins>http://a.example, *</AllowedOrigins><AllowedMethods>GET,PUT\
    </AllowedMethods><MaxAgeInSeconds>30</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders>x-ms-meta-*\
    </AllowedHeaders></CorsRule>";

#[test]
fn what_is_missing_stays() {
    assert_eq!(read("").unwrap(), ServicePropertiesChange::default());
    let change = read("<Cors/>").unwrap();
    assert_eq!(change.cors, Some(Vec::new()));
    assert_eq!(change.logging, None);
}

#[test]
fn properties_survive_writing_and_reading() {
    let properties = ServiceProperties {
        logging: Logging { delete: true, read: false, write: true, retention_days: Some(7) },
        hour_metrics: ServiceMetrics {
            enabled: true,
            include_apis: Some(false),
            retention_days: Some(365),
        },
        minute_metrics: ServiceMetrics::default(),
        cors: read(&format!("<Cors>{RULE}</Cors>")).unwrap().cors.unwrap(),
        default_version: Some("2019-07-07".to_owned()),
        delete_retention_days: None,
        website: Some(Website {
            index_document: Some("index.html".to_owned()),
            error_document: Some("errors/404.html".to_owned()),
            default_index_path: None,
        }),
    };
    assert_eq!(properties.cors[0].allowed_headers, "x-ms-meta-*");
    let change = read_properties(write_properties(&properties, true).as_bytes()).unwrap();
    assert_eq!(change.permanent_delete, Some(true));
    let mut copied = ServiceProperties::default();
    change.apply(&mut copied);
    assert_eq!(copied, properties);
}

#[test]
fn what_the_service_refuses_is_refused() {
    use Reason as E;
    let many = format!("<Cors>{}</Cors>", RULE.repeat(6));
    let long = RULE.replace("http://a.example", &"h".repeat(257));
    let cases = [
        ("<Nonsense/>", E::UnsupportedElement),
        ("<Cors/><Cors/>", E::InvalidDocument),
        (many.as_str(), E::InvalidDocument),
        ("<Cors><Rule/></Cors>", E::UnsupportedElement),
        ("<Cors><CorsRule/></Cors>", E::MissingElement),
        ("<DefaultServiceVersion>new</DefaultServiceVersion>", E::InvalidElementValue),
        ("<Logging><Version>1.0</Version></Logging>", E::MissingElement),
        ("<StaticWebsite><Enabled>perhaps</Enabled></StaticWebsite>", E::InvalidElementValue),
        (
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>a/b</IndexDocument></StaticWebsite>",
            E::InvalidElementValue,
        ),
        (
            "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
            E::InvalidElementValue,
        ),
    ];
    for (inner, code) in cases {
        assert_eq!(refused(inner), code, "{inner}");
    }
    for (from, to) in
        [("GET", "get"), (">30<", ">-1<"), ("GET,PUT", "GET,,PUT"), ("http://a.example, *", "")]
    {
        let rule = RULE.replace(from, to);
        assert_eq!(refused(&format!("<Cors>{rule}</Cors>")), E::InvalidElementValue, "{rule}");
    }
    assert_eq!(refused(&format!("<Cors>{long}</Cors>")), E::InvalidElementValue);
}

#[test]
fn stats_say_how_new_the_secondary_is() {
    let text = write_stats(Timestamp::from_unix(std::time::Duration::from_secs(1_763_712_000)));
    let root = xml::parse(text.as_bytes(), "StorageServiceStats").unwrap();
    let geo = root.child("GeoReplication").unwrap();
    assert_eq!(geo.child_text("Status"), Some("live"));
    assert_eq!(geo.child_text("LastSyncTime"), Some("Fri, 21 Nov 2025 08:00:00 GMT"));
}
