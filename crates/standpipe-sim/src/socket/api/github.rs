//! GitHub's API: the signed-in user, a repository, lists in pages, what is created, GraphQL.

use serde_json::{Value, json};

use super::with_body;
use crate::provider::Reply;
use crate::socket::http::Request;

/// How many pages a list has.
const PAGES: u64 = 3;

pub(super) fn answer(request: &Request, body: &Value, mut reply: Reply) -> Reply {
    let path = request.path().trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    if path == "graphql" {
        reply.status = 200;
        let data = json!({"viewer": {"login": "octo"}, "rateLimit": {"cost": 1},
                          "repository": {"name": "tap", "issues": {"totalCount": 7}}});
        return with_body(reply, &json!({"data": data}));
    }
    if reply.status == 201 {
        return with_body(reply, &json!({"id": 7, "number": 7, "title": body["title"]}));
    }
    match parts[..] {
        ["user"] => with_body(reply, &json!({"login": "octo", "id": 1, "type": "User"})),
        ["repos", owner, name] => with_body(reply, &repository(owner, name)),
        ["repos", _, _, _] => page(request, reply),
        ["search", _] => {
            let found = json!({"total_count": 0, "incomplete_results": false, "items": []});
            with_body(reply, &found)
        }
        _ => reply,
    }
}

fn repository(owner: &str, name: &str) -> Value {
    json!({"id": 7, "name": name, "full_name": format!("{owner}/{name}"), "private": false,
           "owner": {"login": owner, "id": 1}, "default_branch": "main"})
}

/// One page of a list, with an absolute link to the next one.
fn page(request: &Request, mut reply: Reply) -> Reply {
    let query = request.target.split_once('?').map_or("", |(_, query)| query);
    let stated = query.split('&').find_map(|pair| pair.strip_prefix("page="));
    let number = stated.and_then(|number| number.parse().ok()).unwrap_or(1);
    if number < PAGES {
        let host = request.header("host").unwrap_or_default();
        let others = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("page="));
        let others: String = others.map(|pair| format!("{pair}&")).collect();
        let link = |page| format!("<http://{host}{}?{others}page={page}>", request.path());
        let links = format!("{}; rel=\"next\", {}; rel=\"last\"", link(number + 1), link(PAGES));
        reply.headers.push(("link".to_owned(), links));
    }
    with_body(reply, &json!([{"id": number, "number": number, "title": "a leak"}]))
}
