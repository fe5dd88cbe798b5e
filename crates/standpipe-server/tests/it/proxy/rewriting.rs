//! Routes, fallbacks and shorter answers: only where the pool allows rewriting.

use super::*;

/// Two models; calls of the larger may use the smaller if `rewrite` says so.
fn two_models(sonnet: &str) -> World {
    World::anthropic(&format!(
        "[pool.\"anthropic/sonnet\"]\nmodels = [\"claude-sonnet-*\"]\nrequests = \"1000/h\"\n\
         margin = 0\nfallback = [\"openai/mini\", \"anthropic/haiku\"]\n{sonnet}\n\
         [pool.\"anthropic/haiku\"]\nmodels = [\"claude-haiku-*\", \"claude-haiku-4-5\"]\n\
         requests = \"1000/h\"\n\
         [pool.\"openai/mini\"]\nmodels = [\"gpt-4o-mini\"]\nrequests = \"1000/h\"\n\
         [route]\nclassify = [\"openai/mini\", \"anthropic/haiku\"]\n"
    ))
}

fn pause(world: &World) {
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let pause = json!({"pool": "anthropic/sonnet", "for_ms": 600_000});
    world.daemon.post("/v1/pause", &pause).ok(200);
}

#[test]
fn a_call_that_would_wait_long_uses_the_fallback_and_says_so() {
    let world = two_models("rewrite = true");
    pause(&world);
    let answer = world.post(MESSAGES, &[], &message(false));
    body(&answer, 200);
    assert_eq!(answer.header("x-standpipe-pool"), Some("anthropic/haiku"));
    assert_eq!(answer.header("x-standpipe-model"), Some("claude-haiku-4-5"));
    let log = world.provider.log();
    let models: Vec<&str> = log.iter().map(|call| call.model.as_str()).collect();
    assert_eq!(models, ["claude-sonnet-4-5", "claude-haiku-4-5"]);
    let status = world.settled("anthropic/haiku");
    assert_eq!(limit(&status, "requests")["used"], 1);
}

#[test]
fn without_leave_to_rewrite_a_call_waits_for_its_own_model() {
    let world = two_models("");
    pause(&world);
    let answer = world.post(MESSAGES, &["x-standpipe-wait: 0"], &message(false));
    body(&answer, 429);
    let task = ["x-standpipe-wait: 0", "x-standpipe-task: classify"];
    body(&world.post(MESSAGES, &task, &message(false)), 429);
    assert_eq!(world.provider.log().len(), 1);
}

#[test]
fn a_task_with_a_route_uses_the_route_s_model_of_the_same_provider() {
    let world = two_models("rewrite = true");
    let answer = world.post(MESSAGES, &["x-standpipe-task: classify"], &message(true));
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("x-standpipe-pool"), Some("anthropic/haiku"));
    let answer = world.post(MESSAGES, &["x-standpipe-task: write"], &message(false));
    assert_eq!(answer.header("x-standpipe-pool"), Some("anthropic/sonnet"));
    assert_eq!(answer.header("x-standpipe-model"), None);
    let log = world.provider.log();
    let models: Vec<&str> = log.iter().map(|call| call.model.as_str()).collect();
    assert_eq!(models, ["claude-haiku-4-5", "claude-sonnet-4-5"]);
}

/// A provider that limits each model apart.
fn per_model(rule: Rule) -> World {
    let mut options = ServerOptions::new(Shape::Anthropic, vec![rule]);
    options.per_model = true;
    World::serving(
        options,
        "[pool.\"anthropic/sonnet\"]\nmodels = [\"claude-sonnet-*\"]\nrequests = \"1000/h\"\n\
         rewrite = true\nfallback = [\"anthropic/haiku\"]\n\
         [pool.\"anthropic/haiku\"]\nmodels = [\"claude-haiku-4-5\"]\nrequests = \"1000/h\"\n",
    )
}

#[test]
fn a_refused_call_is_tried_again_with_the_fallback() {
    let world = per_model(Rule::Concurrency { amount: 1 });
    let slow = world.begin(MESSAGES, &["x-service-ms: 600000"], &message(false));
    world.provider.wait_until(|log| !log.is_empty());
    let answer = world.post(MESSAGES, &[], &message(false));
    body(&answer, 200);
    assert_eq!(answer.header("x-standpipe-model"), Some("claude-haiku-4-5"));
    assert_eq!(answer.header("x-standpipe-attempts"), Some("2"));
    let log = world.provider.log();
    let calls: Vec<_> = log.iter().map(|call| (&call.model[7..12], call.status)).collect();
    assert_eq!(calls, [("sonne", None), ("sonne", Some(429)), ("haiku", Some(200))]);
    drop(slow);
}

/// The provider's headers say that nothing is left, so nothing is refused.
#[test]
fn a_model_whose_quota_is_used_up_is_not_asked_again() {
    let hour = 3_600_000_000;
    let world = per_model(Rule::Rolling { unit: Unit::Requests, amount: 1, period: hour });
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    world.settled("anthropic/sonnet");
    let answer = world.post(MESSAGES, &[], &message(false));
    body(&answer, 200);
    assert_eq!(answer.header("x-standpipe-model"), Some("claude-haiku-4-5"));
    assert!(world.provider.log().iter().all(|call| call.refused_by.is_none()));
}

#[test]
fn an_answer_is_shortened_to_what_is_left_if_the_pool_allows_it() {
    for rewrite in ["rewrite = true", ""] {
        let pool = format!(
            "[pool.\"openai/gpt-4o\"]\nmodels = [\"gpt-4o*\"]\noutput_tokens = {{ rate = \"1000/h\"\
             , charged = \"start\" }}\nmargin = 0\nzones = false\n{rewrite}\n"
        );
        let world = World::with(Shape::OpenAi, Vec::new(), &pool);
        let chat = |tokens| json!({"model": "gpt-4o", "max_tokens": tokens, "messages": []});
        let first = ["x-standpipe-wait: 0", "x-used-output: 300"];
        body(&world.post(CHAT, &first, &chat(300)), 200);
        world.settled("openai/gpt-4o");
        let answer = world.post(CHAT, &["x-standpipe-wait: 0"], &chat(800));
        if rewrite.is_empty() {
            body(&answer, 429);
            continue;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        let capped: u64 = answer.header("x-standpipe-max-output").unwrap().parse().unwrap();
        // 700 are left; if others go on as in the last seconds, 400.
        assert!((400..=700).contains(&capped), "{capped}");
    }
}
