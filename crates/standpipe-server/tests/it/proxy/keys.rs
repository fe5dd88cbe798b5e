//! Several API keys: one pool for all, or one for each.

use super::*;

/// The pool of a call with this key, and the daemon that says so.
fn pool_of(world: &World, key: &str) -> String {
    let mut client = world.daemon.tcp();
    let headers = ["content-type: application/json", key];
    client.start("POST", MESSAGES, &headers, message(false).to_string().as_bytes());
    let answer = client.answer();
    body(&answer, 200);
    answer.header("x-standpipe-pool").unwrap().to_owned()
}

fn separate(more: &str) -> World {
    let world = World::anthropic(more);
    let text = std::fs::read_to_string(world.config()).unwrap();
    let text = text.replace("[provider.anthropic]", "[provider.anthropic]\nkeys = \"separate\"");
    world.reconfigured(&text)
}

#[test]
fn keys_share_a_pool_unless_they_are_separate() {
    let world = World::anthropic("");
    assert_eq!(pool_of(&world, "x-api-key: sk-planted-one"), "anthropic/sonnet");
    assert_eq!(pool_of(&world, "x-api-key: sk-planted-two"), "anthropic/sonnet");
}

#[test]
fn every_key_has_a_pool_of_its_own_and_keeps_it_over_a_restart() {
    let world = separate("");
    assert_eq!(pool_of(&world, "x-api-key: sk-planted-one"), "anthropic/sonnet/key-1");
    assert_eq!(pool_of(&world, "x-api-key: sk-planted-two"), "anthropic/sonnet/key-2");
    let bearer = pool_of(&world, "authorization: Bearer sk-planted-one");
    assert_eq!(bearer, "anthropic/sonnet/key-1");
    let text = std::fs::read_to_string(world.config()).unwrap();
    let world = world.reconfigured(&text);
    assert_eq!(pool_of(&world, "x-api-key: sk-planted-two"), "anthropic/sonnet/key-2");
    let keys: Vec<String> = world.provider.log().iter().map(|call| call.key.clone()).collect();
    assert_eq!(keys[1], "sk-planted-two", "each goes with its own key");
    // The hash of a key stays in its file.
    let file = world.home.state().join("proxy-keys");
    let hashes = std::fs::read_to_string(&file).unwrap();
    let shown = [
        world.daemon.get("/v1/pools").text().to_owned(),
        world.daemon.get("/v1/events?since=1h").text().to_owned(),
        world.daemon.get("/metrics").text().to_owned(),
        world.daemon.log(),
    ];
    for output in shown {
        assert!(!output.contains("planted"), "{output}");
        assert!(hashes.lines().all(|hash| !output.contains(hash)), "{output}");
    }
    assert!(files(&world.home).iter().all(|(_, text)| !text.contains("planted")));
}

#[test]
fn a_configured_pool_can_be_for_one_key() {
    let pool = |name: &str, account: &str| {
        format!(
            "[pool.\"anthropic/{name}\"]\nmodels = [\"claude-sonnet-*\"]\nrequests = \"9/h\"\n\
             {account}\n"
        )
    };
    let world = separate(&(pool("first", "account = \"key-1\"") + &pool("others", "")));
    assert_eq!(pool_of(&world, "x-api-key: sk-one"), "anthropic/first");
    assert_eq!(pool_of(&world, "x-api-key: sk-two"), "anthropic/others");
    assert_eq!(pool_of(&world, "x-api-key: sk-three"), "anthropic/others");
}
