//! JSON in and out.

use super::answer;
use super::csv;
use super::faulty;
use super::json;
use crate::query::Request;

const MOUSE: &str = r#"{
  "id": 1, "name": "mouse", "price": 12.5, "tags": ["wireless", "accessory"],
  "dimensions": {"length": 3, "width": 2, "height": 2}, "weight": 0.2,
  "warehouses": [{"latitude": 41.8, "longitude": -87.6}, {"latitude": 1}]
}
"#;

#[test]
fn fields_are_found_by_path() {
    let query = "SELECT weight,warehouses[0].longitude,id,tags[1] FROM BlobStorage[*]";
    assert_eq!(
        answer(json(query), MOUSE),
        "{\"weight\":0.2,\"longitude\":-87.6,\"id\":1,\"_4\":\"accessory\"}\n"
    );
    let query = "SELECT latitude FROM BlobStorage[*].warehouses[*]";
    assert_eq!(answer(json(query), MOUSE), "{\"latitude\":41.8}\n{\"latitude\":1}\n");
    let query = "SELECT length FROM BlobStorage[*].dimensions";
    assert_eq!(answer(json(query), MOUSE), "{\"length\":3}\n");
    let query = "SELECT * FROM BlobStorage[*].warehouses[1]";
    assert_eq!(answer(json(query), MOUSE), "{\"latitude\":1}\n");
    let query = "SELECT s.dimensions.WIDTH w FROM BlobStorage s WHERE s.tags[0] LIKE 'wire%'";
    assert_eq!(answer(json(query), MOUSE), "{\"w\":2}\n");
    assert_eq!(answer(json("SELECT * FROM BlobStorage[*].none"), MOUSE), "");
}

#[test]
fn missing_fields_are_left_out() {
    let blob = "{\"name\": \"owner\", \"id\": 1}\n{\"name2\": \"owner2\"}\n{\"name\": null}";
    assert_eq!(
        answer(json("SELECT name from BlobStorage"), blob),
        "{\"name\":\"owner\"}\n{}\n{\"name\":null}\n"
    );
    let query = "SELECT id FROM BlobStorage WHERE name IS MISSING";
    assert_eq!(answer(json(query), blob), "{}\n");
    let query = "SELECT name FROM BlobStorage WHERE name IS NULL AND name IS NOT MISSING";
    assert_eq!(answer(json(query), blob), "{\"name\":null}\n");
}

#[test]
fn whole_records_keep_what_they_are() {
    let blob = "{\"a\": 1.10, \"b\" :[ 12345678901234567890123, \" \\\" \" ]}\n";
    let compact = "{\"a\":1.10,\"b\":[12345678901234567890123,\" \\\" \"]}\n";
    assert_eq!(answer(json("SELECT * FROM BlobStorage"), blob), compact);
    let output = csv("").output;
    let request = Request { output, ..json("SELECT * FROM BlobStorage") };
    assert_eq!(
        answer(request, "{\"a\":\"x,y\",\"b\":[1,{\"c\":null}]}"),
        "\"x,y\",\"[1,{\"\"c\"\":null}]\"\n"
    );
}

#[test]
fn items_of_a_list_are_records() {
    let blob = "[{\"a\":1}, {\"a\":2},\n{\"a\":3}]\n[]\n[{\"a\":4}]";
    let query = "SELECT a FROM BlobStorage[*] WHERE a > 1";
    assert_eq!(answer(json(query), blob), "{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
    assert_eq!(
        answer(json("SELECT _1 FROM BlobStorage"), "[1,\"x\", true]"),
        "{\"_1\":1}\n{\"_1\":\"x\"}\n{\"_1\":true}\n"
    );
}

#[test]
fn what_is_no_json_ends_the_query() {
    let fatal = |position| vec![(true, "ParseError".to_owned(), position)];
    let query = "SELECT * from BlobStorage";
    let sink = super::run(json(query), b"100,200,300,400\n", 100).unwrap();
    let text = "Unexpected token ',' at [byte: 3]. Expecting tokens '{', or '['.";
    assert_eq!(sink.faults[0].description, text);
    assert_eq!(sink.data, b"");
    for blob in ["{name: owner}\n{\"a\":1}", "{\"a\":1", "hello", "\"x", "{\"a\":01}", "{]\n", "}"]
    {
        assert_eq!(faulty(json(query), blob), (String::new(), fatal(0)), "{blob}");
    }
    let blob = "{\"a\":1}\n{\"a\":}\n";
    assert_eq!(faulty(json(query), blob), ("{\"a\":1}\n".to_owned(), fatal(8)));
}
