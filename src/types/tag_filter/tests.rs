//! Conditions and searches by tags: what they match, what is refused.

use super::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    Tags::new(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()).unwrap()
}

#[test]
fn conditions_compare_texts_and_bind_and_before_or() {
    let tags = tags(&[("a", "1"), ("date", "2024-05-06"), ("white space", "x y")]);
    let holds = |text: &str| TagCondition::parse(text).unwrap().matches(&tags);
    for text in [
        "a = '1'",
        "\"a\"='1'",
        "a <> '2'",
        "\"white space\" = 'x y'",
        "date >= '2024-05-06' AND date < '2024-06'",
        "a = '2' and a = '3' OR a = '1'",
        "a = '1' or a = '2' And a = '3'",
    ] {
        assert!(holds(text), "{text}");
    }
    for text in [
        "a = '2'",
        "missing = ''",
        "missing <> '2'",
        "missing >= ''",
        "missing < 'x'",
        "date > '2024-05-06'",
        "a = '1' AND a = '2' OR a = '3'",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn queries_know_the_container_and_no_alternatives() {
    let query = TagQuery::parse("@container = 'pics' AND \"k\" > 'a' AND k <= 'b'").unwrap();
    assert_eq!(query.container, Some(ContainerName::new("pics").unwrap()));
    assert_eq!(query.clauses.len(), 2);
    assert!(query.matches(&tags(&[("k", "b")])));
    assert!(!query.matches(&tags(&[("k", "a")])));
    TagQuery::parse("\"Rank\" >= '010' AND \"Rank\" < '100'").unwrap();
    let ten: Vec<String> = (0..10).map(|n| format!("k{n} = ''")).collect();
    let ten = ten.join(" AND ");
    TagQuery::parse(&format!("{ten} AND k0 > 'a' AND @container = 'pics'")).unwrap();
}

#[test]
fn refused_queries_say_what_is_wrong() {
    let near = |at: usize, fault: &str| {
        format!("Error parsing query at or near character position {at}: {fault}")
    };
    let key_length = "tag must be between 1 and 128 characters in length";
    let value_length = "tag value must be between 0 and 256 characters in length";
    let eleven: Vec<String> = (0..11).map(|n| format!("k{n} = ''")).collect();
    for (text, message) in [
        ("a = '1' OR a = '2'", near(9, "unexpected or")),
        ("a <> '1'", near(1, "unexpected <>")),
        ("a = 1", near(5, "unexpected '1'")),
        ("@prefix = 'x'", near(1, "unsupported parameter '@prefix'")),
        ("@container > 'pics'", near(12, "unexpected '>'")),
        ("@container = 'x y'", near(1, "unexpected 'x y'")),
        ("\"\" = '1'", near(1, key_length)),
        (&format!("\"{}\" = ''", "k".repeat(129)), near(1, key_length)),
        (&format!("k = '{}'", "v".repeat(257)), near(1, value_length)),
        ("a = '1' AND \"b!\" = ''", near(13, "'!' not permitted in tag name or value")),
        ("a = '#'", near(1, "'#' not permitted in tag name or value")),
        ("@container = 'pics'", TagFilterError::NoTag.to_string()),
        (&eleven.join(" AND "), TagFilterError::TooManyTags.to_string()),
        (
            "\"Rank\" > '10' AND \"Rank\" >= '15'",
            TagFilterError::SameSide("Rank".to_owned()).to_string(),
        ),
    ] {
        assert_eq!(TagQuery::parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn conditions_check_characters_and_no_lengths() {
    let holds = |text: &str| TagCondition::parse(text).unwrap().matches(&tags(&[("a", "1")]));
    assert!(!holds(&format!("\"{}\" <> ''", "k".repeat(140))));
    assert!(holds(&format!("a <> '{}'", "v".repeat(270))));
    let long = vec!["a = '1'"; 1_000].join(" AND ");
    assert!(holds(&long), "{} bytes", long.len());
    for text in ["\"a!\" = '1'", "a = '#'", "@container = 'pics'"] {
        assert!(TagCondition::parse(text).is_err(), "{text}");
    }
}

#[test]
fn condition_without_a_tag_is_not_decoded() {
    let decode = |groups: &Vec<Vec<TagClause>>| {
        postcard::from_bytes::<TagCondition>(&postcard::to_stdvec(groups).unwrap())
    };
    let parsed = TagCondition::parse("a = '1' OR b > '2' AND c <> ''").unwrap();
    assert_eq!(decode(&parsed.0), Ok(parsed.clone()));
    let nameless = TagClause { key: String::new(), ..parsed.0[0][0].clone() };
    for groups in [vec![], vec![vec![]], vec![parsed.0[0].clone(), vec![]], vec![vec![nameless]]] {
        assert!(decode(&groups).is_err(), "{groups:?}");
    }
}

#[test]
fn what_is_not_in_the_grammar_is_refused_with_its_place() {
    for (text, at) in [
        ("", 0),
        ("a", 1),
        ("a =", 3),
        ("a = 1", 4),
        ("a = '1", 4),
        ("a = '1' b = '2'", 8),
        ("a = '1' AND", 11),
        ("= '1'", 0),
        ("a == '1'", 3),
        ("'a' = '1'", 0),
        ("\"a = '1'", 0),
        ("\u{e4} = '1'", 0),
    ] {
        let refused = TagCondition::parse(text).unwrap_err();
        let TagFilterError::At { at: found, .. } = refused else { panic!("{text}: {refused}") };
        assert_eq!(found, at + 1, "{text}");
    }
    assert!(TagCondition::parse(&format!("a = '1'{}", " ".repeat(16 << 10))).is_err());
}
