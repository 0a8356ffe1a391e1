use super::*;

#[test]
fn tag_round_trips_as_clients_send_it() {
    let etag = Etag::from_commit(Timestamp::from_ticks(0x8DE_2F1D_4B79_800B));
    assert_eq!(etag.to_string(), "0x8DE2F1D4B79800B");
    for text in
        ["0x8DE2F1D4B79800B", "\"0x8DE2F1D4B79800B\"", "\"0x8de2f1d4b79800b\"", "0X8DE2F1D4B79800B"]
    {
        assert_eq!(Etag::parse(text), Some(etag), "{text}");
    }
}

#[test]
fn other_tags_are_none_of_ours() {
    for text in [
        "",
        "\"\"",
        "*",
        "0x",
        "8DE2F1D4B79800B",
        "\"0x1",
        "W/\"0x1\"",
        "0x1G",
        "0x12345678901234567",
    ] {
        assert_eq!(Etag::parse(text), None, "{text}");
    }
}
