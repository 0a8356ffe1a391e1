//! Answers of an issuer that are refused.

use super::*;
use crate::frontend::tokens::KeysUrlError;
use crate::frontend::tokens::fetch::ANSWER_BYTES_MAX;

#[tokio::test(start_paused = true)]
async fn answers_that_are_none_are_refused() {
    let (world, key) = (World::new(), Signer::new("a"));
    let (url, discovered) = (by_url(), KeysAt::said_by(ISSUER).unwrap());
    world.site.put("/keys", Answer::Leads);
    assert!(matches!(world.fetch(&url).await, Err(FetchError::Redirect(StatusCode::FOUND))));
    assert_eq!(world.site.requested(), ["/keys"], "not followed");
    assert!(matches!(
        world.fetch(&discovered).await,
        Err(FetchError::Status(StatusCode::NOT_FOUND))
    ));
    let padded = |len: usize| {
        let Answer::Says(_, keys) = key_set(&[&key]) else { panic!("not a key set") };
        let text = String::from_utf8(keys.to_vec()).unwrap();
        says(&format!("{text}{}", " ".repeat(len - text.len())))
    };
    world.site.put("/keys", padded(ANSWER_BYTES_MAX));
    assert!(world.fetch(&url).await.unwrap().knows("a"));
    for large in [padded(ANSWER_BYTES_MAX + 1), Answer::Endless] {
        world.site.put("/keys", large);
        assert!(matches!(world.fetch(&url).await, Err(FetchError::Large)));
    }
    for garbage in ["", "\u{0}", "[]", "<html/>"] {
        world.site.put("/keys", says(garbage));
        assert!(matches!(world.fetch(&url).await, Err(FetchError::Keys(_))), "{garbage}");
        world.site.put(CONFIGURATION, says(garbage));
        let refused = world.fetch(&discovered).await;
        assert!(matches!(refused, Err(FetchError::Configuration(_))), "{garbage}");
    }
}

#[tokio::test(start_paused = true)]
async fn configuration_of_another_issuer_and_unsafe_places_are_refused() {
    let (world, key) = (World::new(), Signer::new("a"));
    let discovered = KeysAt::said_by(ISSUER).unwrap();
    world.site.put("/keys", key_set(&[&key]));
    world.site.put(CONFIGURATION, configuration(&format!("{ISSUER}/"), KEYS));
    assert!(matches!(world.fetch(&discovered).await, Err(FetchError::Issuer(_))));
    for place in ["http://a.example/keys", "file:///keys", "keys"] {
        world.site.put(CONFIGURATION, configuration(ISSUER, place));
        assert!(matches!(world.fetch(&discovered).await, Err(FetchError::Place(_))), "{place}");
    }
    assert!(!world.site.requested().contains(&"/keys".to_owned()));
    let Answer::Says(_, document) = configuration(ISSUER, KEYS) else { panic!("no document") };
    let at = "https://a.example/".parse().unwrap();
    assert!(matches!(fetch::keys_url(&document, &at, ISSUER), Err(FetchError::Downgrade)));
    let elsewhere = World::at("192.0.2.1:7");
    let local = KeysAt::Url("http://localhost:7/keys".parse().unwrap());
    assert!(matches!(elsewhere.fetch(&local).await, Err(FetchError::Elsewhere)));
    let refused = "http://a.example/".parse::<crate::frontend::KeysUrl>().unwrap_err();
    assert!(matches!(refused, KeysUrlError::Insecure(_)));
}
