use super::*;

const SMALL: Tag = Tag::optional(1);
const MUST: Tag = Tag::required(2);
const FLAG: Tag = Tag::required(40);

/// The fields of a made-up row.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fields {
    small: Option<u8>,
    must: Vec<String>,
    flag: bool,
    unknown: UnknownFields,
}

impl Tagged for Fields {
    fn write(&self, out: &mut Writer) {
        out.flag(FLAG, self.flag);
        out.list(MUST, &self.must);
        out.some(SMALL, self.small.as_ref());
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            SMALL => self.small = field.some()?,
            MUST => self.must = field.value()?,
            FLAG => self.flag = field.flag()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown(&self) -> &UnknownFields {
        &self.unknown
    }

    fn unknown_mut(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }
}

fn full() -> Fields {
    let unknown = UnknownFields::of([(3, b"\x07".as_slice().into()), (300, Bytes::new())]);
    Fields { small: Some(9), must: vec!["a".to_owned()], flag: true, unknown }
}

/// Tag, length and bytes of each field.
const FULL: &[u8] = &[
    2, 1, 9, // number 1
    5, 3, 1, 1, b'a', // number 2, required
    6, 1, 7, // number 3, not known
    81, 0, // number 40, required
    0xd8, 4, 0, // number 300, not known
];

fn read(bytes: &[u8]) -> Result<Option<Fields>, TailError> {
    decode::<Fields>(bytes).map(|fields| fields.map(|fields| *fields))
}

#[test]
fn fields_are_in_the_order_of_their_numbers_and_unknown_ones_among_them() {
    assert_eq!(encode(&full()), FULL);
    assert_eq!(read(FULL), Ok(Some(full())));
}

#[test]
fn no_field_takes_no_bytes() {
    assert_eq!(encode(&Fields::default()), b"");
    assert_eq!(read(b""), Ok(None));
    // A list of nothing is no field.
    assert_eq!(read(&[5, 1, 0]), Ok(None));
}

#[test]
fn an_unknown_field_that_must_be_known_is_refused_by_its_number() {
    let refused = read(&[2, 1, 9, 7, 1, 0]).unwrap_err();
    assert_eq!(refused, TailError::Newer(3));
    assert_eq!(refused.to_string(), "field 3 is of a newer release: run that release");
    // The number of a field that is known does not make it the known one.
    assert_eq!(read(&[3, 1, 9]), Err(TailError::Newer(1)));
}

#[test]
fn fields_out_of_order_or_twice_are_refused() {
    for bytes in [
        [5, 1, 0, 2, 1, 9].as_slice(),
        &[2, 1, 9, 2, 1, 9],
        &[6, 1, 7, 6, 1, 7],
        // One number, once optional and once required.
        &[6, 1, 7, 7, 1, 7],
    ] {
        assert_eq!(read(bytes), Err(TailError::Malformed), "{bytes:?}");
    }
}

#[test]
fn cut_fields_and_bytes_after_a_value_are_refused() {
    // If the bytes end between two fields, only the length before all fields shows that some are
    // missing.
    let whole = [0, 3, 8, 11, 13];
    for len in 0..FULL.len() {
        let cut = read(&FULL[..len]);
        assert_eq!(cut.is_ok(), whole.contains(&len), "{len}: {cut:?}");
    }
    assert_eq!(read(&[2, 2, 9, 9]), Err(TailError::Malformed));
    assert_eq!(read(&[81, 1, 0]), Err(TailError::Malformed), "a flag has no bytes");
    assert_eq!(read(&[2, 0xff, 0xff, 0xff, 0xff, 0xff, 1]), Err(TailError::Malformed));
}

#[test]
fn faults_of_a_row_are_named_as_far_as_possible() {
    let fault_of = |row: &[u8]| fault::<u8, Fields>(row);
    assert!(fault_of(&[1, 3, 7, 1, 0]).contains("field 3 is of a newer release"));
    assert_eq!(fault_of(&[1, 3, 2, 2, 0]), "malformed fields");
    assert_eq!(fault_of(&[1, 9, 2]), "bad record");
    assert_eq!(fault_of(&[]), "bad record");
    assert_eq!(fault_of(&[1, 0]), "bad record", "the fault is behind the fields");
}
