//! APIs without built-in rules: pools and costs by path and method, from the configuration.

use super::*;

const SHOP: &str = r#"
[[provider.shop.calls]]
paths   = ["/v2/status"]
counted = false

[[provider.shop.calls]]
paths   = ["/v2/orders", "/v2/orders/*"]
methods = ["POST", "PUT"]
pool    = "shop/write"
cost    = { points = 5, rows = 20, parallel = 2 }

[[provider.shop.calls]]
cost = { points = 1 }

[pool."shop/write"]
points   = "900/h"
units    = { rows = "1000/h" }
parallel = 4

[pool."shop/api"]
requests = "1000/h"
points   = "900/h"
"#;

#[test]
fn path_and_method_determine_pool_and_cost() {
    let world = World::with(Shape::Plain, Vec::new(), "");
    let text = std::fs::read_to_string(world.config()).unwrap();
    let text =
        text.replace("open_pools = true", "").replace("[provider.github]", "[provider.shop]");
    let world = world.reconfigured(&format!("{text}{SHOP}"));
    let mut client = world.daemon.tcp();
    let mut pool_of = |method: &str, path: &str| {
        client.start(method, &format!("/as/blog/shop{path}"), &[], b"");
        let answer = client.answer();
        answer.header("x-standpipe-pool").map(str::to_owned)
    };
    let (write, api) = (Some("shop/write".to_owned()), Some("shop/api".to_owned()));
    assert_eq!(pool_of("POST", "/v2/orders?dry=1"), write, "the query is not part of the path");
    assert_eq!(pool_of("PUT", "/v2/orders/7"), write);
    assert_eq!(pool_of("GET", "/v2/orders/7"), api, "another method");
    assert_eq!(pool_of("POST", "/v2/ordersets"), api, "another path");
    assert_eq!(pool_of("GET", "/v2/status"), None, "it does not count");
    let status = world.settled("shop/write");
    assert_eq!(limit(&status, "points")["used"], 10);
    assert_eq!(limit(&status, "rows")["used"], 40);
    let status = world.settled("shop/api");
    assert_eq!(limit(&status, "points")["used"], 2);
    assert_eq!(limit(&status, "requests")["used"], 2);
    assert_eq!(world.provider.log().len(), 5, "every call was forwarded");
}

/// What the configuration states takes the place of what is built in for a provider.
#[test]
fn a_known_provider_can_be_described_too() {
    let calls = r#"
        [[provider.github.calls]]
        methods = ["DELETE"]
        cost    = { points = 7 }

        [[provider.openai.calls]]
        paths = ["/v1/moderations"]
        pool  = "openai/moderation"

        [pool."github/core"]
        points  = "900/h"
        content = "80/h"

        [pool."openai/moderation"]
        requests = "5/h"
    "#;
    let world = World::with(Shape::GitHub, Vec::new(), calls);
    let mut client = world.daemon.tcp();
    let mut pool_of = |method: &str, path: &str| {
        client.start(method, path, &["content-type: application/json"], b"{}");
        client.answer().header("x-standpipe-pool").map(str::to_owned)
    };
    let core = Some("github/core".to_owned());
    assert_eq!(pool_of("DELETE", "/as/blog/github/repos/octo/tap/issues/1"), core);
    assert_eq!(pool_of("POST", "/as/blog/github/repos/octo/tap/issues"), core);
    let status = world.settled("github/core");
    assert_eq!(limit(&status, "points")["used"], 7 + 5);
    assert_eq!(limit(&status, "content")["used"], 1);
    let moderation = pool_of("POST", "/as/blog/openai/v1/moderations");
    assert_eq!(moderation.as_deref(), Some("openai/moderation"));
    assert_eq!(pool_of("GET", "/as/blog/openai/v1/models"), None);
}
