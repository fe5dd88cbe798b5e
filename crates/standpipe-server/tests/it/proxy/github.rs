//! What calls to GitHub cost: requests, points, and content that they create.

use super::*;

const POOLS: &str = "[pool.\"github/core\"]\nrequests = \"1000/h\"\npoints = \"900/h\"\n\
    content = \"80/h\"\n[pool.\"github/graphql\"]\npoints = \"900/h\"\ncontent = \"80/h\"\n";

#[test]
fn a_call_that_creates_content_counts_against_its_limit() {
    let world = World::with(Shape::GitHub, Vec::new(), POOLS);
    let mut client = world.daemon.tcp();
    let mut used = |method: &str, path: &str, body: &str, pool: &str| {
        client.start(method, path, &["content-type: application/json"], body.as_bytes());
        let answer = client.answer();
        assert_eq!(answer.header("x-standpipe-pool"), Some(pool), "{answer:?}");
        let status = world.settled(pool);
        ["points", "content"].map(|unit| limit(&status, unit)["used"].as_u64().unwrap())
    };
    let issues = "/as/blog/github/repos/octo/tap/issues";
    assert_eq!(used("GET", issues, "", "github/core"), [1, 0]);
    assert_eq!(used("POST", issues, "{\"title\":\"t\"}", "github/core"), [6, 1]);
    assert_eq!(used("DELETE", issues, "", "github/core"), [11, 1]);
    let query = "{\"query\":\"{viewer{login}}\"}";
    let mutation = "{\"query\":\"mutation{addStar(input:{}){clientMutationId}}\"}";
    let before = used("POST", "/as/blog/github/graphql", query, "github/graphql");
    let after = used("POST", "/as/blog/github/graphql", mutation, "github/graphql");
    assert_eq!((before[1], after[1]), (0, 1));
}
