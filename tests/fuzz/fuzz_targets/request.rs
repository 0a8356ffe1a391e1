//! Any head: addressed, parsed, echoed and refused without a panic, each error with a status of the
//! table.
#![no_main]

use blockyard::protocol::model::Refusal;
use blockyard::protocol::azure::Addressing;
use blockyard::protocol::azure::Context;
use blockyard::protocol::azure::RequestEcho;
use blockyard::protocol::azure::address;
use blockyard::protocol::azure::parse;
use blockyard::protocol::azure::render_error;
use blockyard::types::Timestamp;
use http::request::Parts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(head) = head(data) else { return };
    let mut echo = RequestEcho::new(&head, "id".to_owned(), Timestamp::ZERO);
    if let Err(error) = read(&head, &mut echo) {
        let response = render_error(&error, &echo);
        assert!(response.status().as_u16() < 500 || response.status() == 501, "{error:?}");
    }
});

fn read(head: &Parts, echo: &mut RequestEcho) -> Result<(), Refusal> {
    let context = Context::from_head(head)?;
    let host = head.headers.get("host").and_then(|value| value.to_str().ok());
    let address = address(&head.method, &head.uri, host, &Addressing::default())?;
    let parsed = parse(head, &address, &context)?;
    echo.operation(parsed.operation(), &address, "http");
    Ok(())
}

/// `METHOD URL` and `name:value` lines; a leading digit picks a request that is nearly good.
fn head(data: &[u8]) -> Option<Parts> {
    const NEARLY: [&str; 6] = [
        "PUT /acct/con/b?comp=block&blockid=YWFh\ncontent-length:1\n",
        "PUT /acct/con/b\nx-ms-blob-type:BlockBlob\ncontent-length:1\n",
        "GET /acct/con?restype=container&comp=list\n",
        "GET /acct/con/b\n",
        "DELETE /acct/con/b\n",
        "PUT /acct/con?restype=container\n",
    ];
    let (first, rest) = data.split_first()?;
    let nearly = NEARLY.get(usize::from(first.wrapping_sub(b'0')));
    let text = match nearly {
        Some(start) => [start.as_bytes(), rest].concat(),
        None => data.to_vec(),
    };
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut words = lines.next()?.splitn(2, |&byte| byte == b' ');
    let mut request = http::Request::builder().method(words.next()?).uri(words.next()?);
    for line in lines.take(100) {
        let mut halves = line.splitn(2, |&byte| byte == b':');
        request = request.header(halves.next()?, halves.next()?);
    }
    Some(request.body(()).ok()?.into_parts().0)
}
