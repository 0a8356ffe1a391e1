//! Any form, in pieces of any size: its file comes out, or it is refused, whatever the pieces. Its
//! policy is read too.
#![no_main]

use blockyard::protocol::s3::form::decode_form;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((size, form)) = data.split_first() else { return };
    let whole = decode_form(form, form.len());
    let pieces = decode_form(form, usize::from(*size));
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert!(whole == pieces && whole.len() <= form.len()),
        (Err(whole), Err(pieces)) => assert_eq!(whole.reason, pieces.reason),
        (whole, pieces) => panic!("{whole:?} {pieces:?}"),
    }
});
