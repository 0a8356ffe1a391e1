use super::*;
use crate::protocol::model::Reason;

fn read(inner: &str) -> Result<Request, Refusal> {
    let head = "<?xml version='1.0' encoding='utf-8'?>\n<QueryRequest>";
    read_query(format!("{head}{inner}</QueryRequest>").as_bytes())
}

const SQL: &str = "<QueryType>SQL</QueryType><Expression>SELECT * from BlobStorage</Expression>";

#[test]
fn formats_are_delimited_text_unless_they_are_named() {
    let request = read(SQL).unwrap();
    assert_eq!(request.expression, "SELECT * from BlobStorage");
    assert_eq!(request.input, Input::Csv(Delimited::default()));
    assert_eq!(request.output, Output::Csv(Delimited::default()));
}

/// As the Python client wrote it in a recorded test.
#[test]
fn formats_of_a_client_are_read() {
    let request = read(&format!(
        "{SQL}<InputSerialization><Format><Type>json</Type><JsonTextConfiguration>\
         <RecordSeparator>\n</RecordSeparator></JsonTextConfiguration></Format>\
         </InputSerialization><OutputSerialization><Format><Type>delimited</Type>\
         <DelimitedTextConfiguration><ColumnSeparator>;</ColumnSeparator>\
         <FieldQuote>'</FieldQuote><RecordSeparator>.</RecordSeparator>\
         <EscapeChar>\\</EscapeChar><HasHeaders>false</HasHeaders></DelimitedTextConfiguration>\
         </Format></OutputSerialization>"
    ))
    .unwrap();
    assert_eq!(request.input, Input::Json { record_separator: "\n".to_owned() });
    let expected = Delimited {
        column_separator: ";".to_owned(),
        record_separator: ".".to_owned(),
        field_quote: "'".to_owned(),
        escape_char: "\\".to_owned(),
        has_headers: false,
    };
    assert_eq!(request.output, Output::Csv(expected));
}

#[test]
fn an_answer_has_the_format_of_the_blob() {
    let of = |format: &str| {
        let body =
            format!("{SQL}<InputSerialization><Format>{format}</Format></InputSerialization>");
        read(&body).unwrap()
    };
    let json = "<Type>json</Type><JsonTextConfiguration><RecordSeparator>\r</RecordSeparator>\
                </JsonTextConfiguration>";
    assert!(matches!(of(json).output, Output::Json { .. }));
    let parquet = of("<Type>parquet</Type><ParquetTextConfiguration/>");
    assert_eq!(
        (parquet.input, parquet.output),
        (Input::Parquet, Output::Csv(Delimited::default()))
    );
    let text = "<Type>delimited</Type><DelimitedTextConfiguration><ColumnSeparator>\t\
                </ColumnSeparator><HasHeaders>true</HasHeaders></DelimitedTextConfiguration>";
    let Input::Csv(text) = of(text).input else { panic!() };
    assert_eq!((text.column_separator.as_str(), text.has_headers), ("\t", true));
    assert_eq!(text.field_quote, "\"");
    let bare = "<Type>delimited</Type><DelimitedTextConfiguration><ColumnSeparator/><FieldQuote/>\
                </DelimitedTextConfiguration>";
    let Input::Csv(text) = of(bare).input else { panic!() };
    assert_eq!((text.column_separator.as_str(), text.field_quote.as_str()), (",", ""));
}

#[test]
fn columns_of_arrow_are_read() {
    let of = |fields: &str| {
        read(&format!(
            "{SQL}<OutputSerialization><Format><Type>arrow</Type><ArrowConfiguration><Schema>\
             {fields}</Schema></ArrowConfiguration></Format></OutputSerialization>"
        ))
    };
    let Output::Arrow(fields) = of("<Field><Type>decimal</Type><Name>abc</Name>\
         <Precision>4</Precision><Scale>2</Scale></Field><Field><Type>timestamp[ms]</Type></Field>")
    .unwrap()
    .output
    else {
        panic!()
    };
    let decimal = ArrowField {
        kind: ArrowKind::Decimal,
        name: Some("abc".to_owned()),
        precision: Some(4),
        scale: Some(2),
    };
    assert_eq!(fields[0], decimal);
    assert_eq!((fields[1].kind, fields[1].name.as_deref()), (ArrowKind::TimestampMillis, None));
    let refused = |fields: &str| of(fields).unwrap_err().reason;
    assert_eq!(refused(""), Reason::MissingElement);
    assert_eq!(refused("<Column/>"), Reason::UnsupportedElement);
    assert_eq!(refused("<Field><Type>int8</Type></Field>"), Reason::InvalidElementValue);
    let wide = "<Field><Type>decimal</Type><Precision>400</Precision></Field>";
    assert_eq!(refused(wide), Reason::InvalidElementValue);
}

#[test]
fn other_bodies_are_refused() {
    let input = |format: &str| {
        format!("{SQL}<InputSerialization><Format>{format}</Format></InputSerialization>")
    };
    for (body, reason) in [
        ("", Reason::MissingElement),
        ("<QueryType>SQL</QueryType>", Reason::MissingElement),
        ("<QueryType>SQL</QueryType><Expression/>", Reason::InvalidElementValue),
        ("<QueryType>XPath</QueryType><Expression>a</Expression>", Reason::InvalidElementValue),
        (&format!("{SQL}<Limit>1</Limit>"), Reason::UnsupportedElement),
        (&format!("{SQL}<InputSerialization/>"), Reason::MissingElement),
        (&input(""), Reason::MissingElement),
        (&input("<Type>arrow</Type>"), Reason::InvalidElementValue),
        (
            &input(
                "<Type>delimited</Type><DelimitedTextConfiguration><HasHeaders>1</HasHeaders>\
                 </DelimitedTextConfiguration>",
            ),
            Reason::InvalidElementValue,
        ),
    ] {
        assert_eq!(read(body).unwrap_err().reason, reason, "{body}");
    }
    assert_eq!(read_query(b"SELECT 1").unwrap_err().reason, Reason::InvalidDocument);
    let long = format!(
        "<QueryType>SQL</QueryType><Expression>{}</Expression>",
        "x".repeat(EXPRESSION_BYTES_MAX + 1)
    );
    assert_eq!(read(&long).unwrap_err().reason, Reason::InvalidElementValue);
}
