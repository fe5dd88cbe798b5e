//! Valid files and the settings that they give.

use super::*;
use standpipe_core::{
    Backoff, CascadeThreshold, Charged, Limit, LimitSelector, Margin, Order, Policy, Portion,
    Priority, Resets, ReturnWindows, Rule, Span, TimeRange, Unit,
};

#[test]
fn every_key_is_read() {
    let all = settings(FULL);
    assert_eq!((all.version, all.open_pools, all.written), (Some(3), Some(true), 7));
    assert_eq!(all.listen, Some("127.0.0.1:9000".parse().unwrap()));
    let store = all.store.clone().unwrap();
    let url = "rediss://ops:s3cret@redis.example:6380/2";
    assert_eq!(store.url, StoreUrl::Redis(url.to_owned()));
    assert_eq!((store.prefix.as_str(), store.wait_replicas, store.compact), ("team", 1, false));
    assert_eq!((store.skew, store.slack()), (Span::millis(250), Span::millis(200)));
    assert_eq!(all.workflows["issue-to-deploy"].agents.len(), 3);
    assert!(all.workflows["issue-to-deploy"].hold);
    assert_eq!(all.routes["classify"].len(), 2);
    let provider = &all.providers["anthropic"];
    assert_eq!(provider.upstream.as_deref(), Some("https://api.example.com/v1"));
    assert_eq!(provider.ca.as_deref(), Some(Path::new("/etc/ssl/own.pem")));
    assert_eq!((provider.keys, provider.split_by.len()), (KeyPools::Separate, 3));
    let github = &all.providers["github"];
    assert_eq!(github.key_env.as_deref(), Some("GITHUB_TOKEN"));
    assert_eq!((github.keys, github.split_by.as_slice()), (KeyPools::Shared, &[][..]));
    let [changes, free] = &github.calls[..] else { panic!("{:?}", github.calls) };
    assert_eq!(changes.pool, Some(pool_name("github/core")));
    let cost = [(Unit::Points, 5), (Unit::Usd, 10_000), (Unit::Parallel, 2)];
    assert_eq!(changes.cost, cost.into());
    assert!(changes.counted && changes.matches("POST", "/repos/octo/tap/issues"));
    assert!(!changes.matches("GET", "/repos/octo/tap/issues"));
    assert!(!changes.matches("POST", "/repos/octo/tap"));
    assert!(!free.counted && free.matches("GET", "/meta") && free.matches("PUT", "/meta"));
    assert_eq!(all.server.token_file.as_deref(), Some(Path::new("/run/standpipe/token")));
}

#[test]
fn relative_paths_count_from_the_file() {
    let all = settings(FULL);
    let key = all.providers["anthropic"].key_file.as_deref();
    assert_eq!(key, Some(Path::new("/x/keys/anthropic")));
    assert_eq!(all.server.socket.as_deref(), Some(Path::new("/x/standpipe.sock")));
}

#[test]
fn every_policy_of_a_pool_is_read() {
    let all = settings(FULL);
    let pool = &all.pools[&pool_name("anthropic/sonnet")];
    assert_eq!(pool.provider.as_deref(), Some("anthropic"));
    assert_eq!((pool.models.len(), pool.account.as_deref()), (1, Some("team")));
    assert_eq!((pool.margin, pool.slack), (Margin::Fixed(200), Some(Span::millis(10))));
    assert_eq!((pool.enforce, pool.zones, pool.yields), (false, Toggle::On, false));
    assert_eq!((pool.breaker, pool.cascade, pool.learn, pool.rewrite), (false, None, false, true));
    let backoff = Backoff {
        base: Span::secs(60),
        factor_per_mille: 1_500,
        cap: Some(Span::secs(300)),
        jitter: true,
    };
    assert_eq!(pool.backoff, Some(backoff));
    let windows = pool.return_windows.unwrap();
    assert_eq!(windows.critical.to, Span::secs(1));
    assert_eq!(windows.standard, ReturnWindows::USUAL.standard);
    assert_eq!(windows.background, TimeRange { from: Span::secs(2), to: Span::millis(30_500) });
    assert_eq!(
        (pool.retry_budget.unwrap().per_mille, pool.longest_wait),
        (50, Some(Span::secs(120)))
    );
    assert_eq!(pool.longest_lease, LongestLease::Unlimited);
    assert_eq!((pool.lease_ttl, pool.keepalive), (Span::secs(120), Some(Span::secs(5))));
    assert_eq!(pool.fallback, [pool_name("anthropic/haiku")]);
    let price: Vec<u64> = pool.price.values().copied().collect();
    assert_eq!(price, [3_000_000, 15_000_000, 250_000]);
    assert_eq!(pool.on_store_failure, StoreFailure::Share);
    let github = &all.pools[&pool_name("github/core")];
    assert_eq!(github.return_windows.unwrap().background.to, Span::secs(30));
}

#[test]
fn limits_are_kept_in_the_order_of_the_file() {
    let all = settings(FULL);
    let limits = &all.pools[&pool_name("github/core")].limits;
    let window = |unit: Unit, amount, period| Rule::Window { unit, amount, period };
    let (minute, hour, day) = (Span::secs(60), Span::secs(3_600), Span::secs(86_400));
    let rules = [
        window(Unit::Requests, 5_000, hour),
        window(Unit::Points, 900, minute),
        window(Unit::Content, 80, minute),
        window(Unit::Content, 500, hour),
        window(Unit::Usd, 20_000_000, day),
        Rule::Parallel { amount: 100 },
    ];
    assert_eq!(limits.iter().map(|limit| limit.rule.clone()).collect::<Vec<_>>(), rules);
    assert_eq!(limits[0].resets, Resets::Provider);
    assert_eq!(limits[3].pace, Some(Span::secs(1)));
    let sonnet = &all.pools[&pool_name("anthropic/sonnet")].limits;
    let charged: Vec<Charged> = sonnet.iter().map(|limit| limit.charged).collect();
    let (start, end) = (Charged::Start, Charged::End);
    assert_eq!(charged, [start, start, end, start, end]);
    let unit = Unit::named("gpu_ms").unwrap();
    let bucket = Rule::Bucket { unit, amount: 1_000_000, period: hour, burst: 50_000 };
    assert_eq!(sonnet[4].rule, bucket);
}

#[test]
fn the_burst_of_a_bucket_defaults_to_the_amount_of_its_rate() {
    let text = "[pool.\"a/b\"]\nrequests = { rate = \"60/min\", kind = \"bucket\" }";
    let Rule::Bucket { burst, .. } = settings(text).pools[&pool_name("a/b")].limits[0].rule else {
        panic!("not a bucket");
    };
    assert_eq!(burst, 60);
}

#[test]
fn the_core_gets_each_pool_with_the_rules_that_concern_it() {
    let all = settings(FULL);
    let sonnet = all.pool_config(&pool_name("anthropic/sonnet")).unwrap();
    assert_eq!(sonnet.check(), Ok(()));
    assert_eq!((sonnet.slack, sonnet.claim), (Span::millis(10), Span::secs(5)));
    assert_eq!((sonnet.longest_lease, sonnet.enforce), (None, false));
    let names: Vec<&str> = sonnet.agents.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["data@ship", "picard"], "ralph has no settings");
    let (data, picard) = (&sonnet.agents[0], &sonnet.agents[1]);
    assert_eq!(data.floors, [Share { of: LimitSelector::All, portion: Portion::PerMille(100) }]);
    assert_eq!(picard.priority, Some(Priority::Critical));
    assert_eq!((picard.floors.len(), picard.caps.len()), (1, 2));

    let github = all.pool_config(&pool_name("github/core")).unwrap();
    assert_eq!(github.check(), Ok(()));
    assert_eq!((github.slack, github.longest_lease), (Span::millis(200), Some(Span::secs(3_600))));
    assert_eq!(github.agents[0].floors.len(), 2);
    let haiku = all.pool_config(&pool_name("anthropic/haiku")).unwrap();
    assert_eq!((haiku.limits.len(), haiku.policy.learn), (0, true), "its limits are learned");
    assert_eq!(all.pool_config(&pool_name("no/such")), None);
}

/// Without fair order a weight changes nothing, so it makes no rule.
#[test]
fn weights_are_for_pools_in_fair_order() {
    let all = settings(
        "[pool.\"a/b\"]\nparallel = 2\norder = \"fair\"\n[pool.\"a/c\"]\nparallel = 2\n\
         [agent.data]\nweight = 5\n[agent.ralph]\nweight = 1",
    );
    let fair = all.pool_config(&pool_name("a/b")).unwrap();
    assert_eq!((fair.order, fair.agents.len(), fair.agents[0].weight), (Order::Fair, 1, 5));
    let other = all.pool_config(&pool_name("a/c")).unwrap();
    assert_eq!((other.order, other.agents), (Order::Arrival, Vec::new()));
}

/// Nothing can be kept of an unlimited unit, but a cap can be a rate. Where limits are learned,
/// every unit may become limited.
#[test]
fn an_unlimited_unit_has_a_cap_and_no_floor() {
    let agent = "[agent.x]\ncap = { requests = \"5/min\" }\nfloor = { requests = \"5/min\" }";
    for (pool, floors) in [("parallel = 2", 0), ("provider = \"anthropic\"", 1)] {
        let all = settings(&format!("[pool.\"a/b\"]\n{pool}\n{agent}"));
        let config = all.pool_config(&pool_name("a/b")).unwrap();
        assert_eq!(config.check(), Ok(()));
        let [rule] = config.agents.as_slice() else { panic!("{:?}", config.agents) };
        assert_eq!((rule.caps.len(), rule.floors.len()), (1, floors));
    }
}

#[test]
fn the_defaults_of_a_pool() {
    let all = settings("[pool.\"a/b\"]\nrequests = \"60/min\"\n[pool.\"a/c\"]\nparallel = 2");
    let rated = all.pool_config(&pool_name("a/b")).unwrap();
    let rule = Rule::Window { unit: Unit::Requests, amount: 60, period: Span::secs(60) };
    assert_eq!(
        rated,
        PoolConfig {
            margin: Margin::Auto,
            slack: Span::millis(50),
            policy: Policy::usual(),
            ..PoolConfig::new(vec![Limit::new(rule)])
        }
    );
    let slots = all.pool_config(&pool_name("a/c")).unwrap();
    assert_eq!(slots.longest_lease, None, "a slot may be held without limit");
    let settings = PoolSettings::default();
    assert_eq!(settings.longest_lease(), Some(Span::secs(3_600)), "limits are yet to be learned");
    assert_eq!((settings.lease_ttl, settings.enforce), (Span::secs(600), true));
}

/// Every policy can be switched off by itself.
#[test]
fn policies_that_are_switched_off() {
    let off = |line: &str| {
        let all = settings(&format!("[pool.\"a/b\"]\nparallel = 2\n{line}"));
        all.pool_config(&pool_name("a/b")).unwrap().policy
    };
    let usual = Policy::usual;
    assert_eq!(off("backoff = false"), Policy { backoff: None, ..usual() });
    assert_eq!(off("return_windows = false"), Policy { comeback: None, ..usual() });
    assert_eq!(off("cascade = false"), Policy { cascade: None, ..usual() });
    assert_eq!(off("cascade = true"), usual());
    let cascade = Some(CascadeThreshold { agents: 5, within: Span::secs(60) });
    let threshold = "cascade = { agents = 5, within = \"1min\" }";
    assert_eq!(off(threshold), Policy { cascade, ..usual() });
    assert_eq!(off("zones = false"), Policy { zones: standpipe_core::Zones::Off, ..usual() });
    assert_eq!(off("zones = true"), Policy { zones: standpipe_core::Zones::All, ..usual() });
    assert_eq!(off("yield = false"), Policy { yields: false, ..usual() });
    assert_eq!(off("spread = false"), Policy { spreads: false, ..usual() });
    assert_eq!(off("spread = true"), usual());
    assert_eq!(off("spread = \"auto\""), usual());
    assert_eq!(off("promotion = false"), Policy { promotes: false, ..usual() });
    assert_eq!(off("reconcile = false"), Policy { reconciles: false, ..usual() });
    assert_eq!(off("estimates = false"), Policy { estimates: false, ..usual() });
    assert_eq!(off("breaker = false"), Policy { breaker: false, ..usual() });
    assert_eq!(off("learn = false"), Policy { learn: false, ..usual() });
    assert_eq!(off("retry_budget = false"), Policy { retries: None, ..usual() });
}

/// The limits of a pool that states none are learned from the provider.
#[test]
fn a_provider_is_enough_without_limits() {
    let all = settings("[pool.\"a/b\"]\nprovider = \"anthropic\"");
    let learned = all.pool_config(&pool_name("a/b")).unwrap();
    assert_eq!((learned.limits.len(), learned.check()), (0, Ok(())));
}

#[test]
fn an_empty_file_gives_the_defaults() {
    for text in ["", "\n\n", "# only a comment", "\u{feff}"] {
        let nothing = settings(text);
        assert_eq!((nothing.store.clone(), nothing.pools.len()), (None, 0), "{text:?}");
    }
    let source = settings("version = 9").source();
    assert_eq!(source, Source::File { version: Some(9), written: 7 });
}

#[test]
fn crlf_inline_and_dotted_spellings_are_the_same() {
    let spelled = "[pool.\"a/b\"]\r\nrequests = \"60/min\"\r\nbackoff.base = 5\r\n";
    let inline = "pool = { \"a/b\" = { requests = \"60/min\", backoff = { base = \"5s\" } } }";
    assert_eq!(settings(spelled).pools, settings(inline).pools);
}

#[test]
fn an_unknown_pool_is_an_error_only_with_a_file() {
    let text = "[pool.\"anthropic/sonnet\"]\nparallel = 1\n";
    let error = settings(text).unknown_pool(&pool_name("anthropic/sonet")).unwrap().to_string();
    assert_eq!(
        error,
        "/x/standpipe.toml: there is no pool `anthropic/sonet`; did you mean `anthropic/sonnet`?"
    );
    let error = settings(text).unknown_pool(&pool_name("my/api")).unwrap().to_string();
    let add =
        "add [pool.\"my/api\"] with a limit such as requests = \"60/min\", or write open_pools";
    assert!(error.ends_with(&format!("{add} = true")), "{error}");
    assert_eq!(settings(text).unknown_pool(&pool_name("anthropic/sonnet")), None);
    let closed = settings("open_pools = false");
    assert!(closed.unknown_pool(&pool_name("a/b")).is_some());
    // A file that only names the store or the daemon's address is not about pools.
    for open in ["open_pools = true", "store = \"memory\"", "[agent.x]\npriority = \"critical\""] {
        assert_eq!(settings(open).unknown_pool(&pool_name("a/b")), None, "{open}");
    }
    assert_eq!(Settings::default().unknown_pool(&pool_name("a/b")), None);
}

#[test]
fn pools_of_a_known_provider_are_learned_unless_the_file_describes_one_of_them() {
    let is_usable =
        |text: &str, pool: &str| settings(text).unknown_pool(&pool_name(pool)).is_none();
    let github = "[pool.\"github/core\"]\nparallel = 1\n";
    assert!(is_usable(github, "anthropic/sonnet"));
    assert!(!is_usable(github, "github/search"));
    assert!(!is_usable(github, "gh/search"), "another name of the same provider");
    assert!(!is_usable(github, "antropic/sonnet"));
    let renamed = "[pool.\"work/claude\"]\nprovider = \"anthropic\"\n";
    assert!(!is_usable(renamed, "anthropic/sonnet"));
    let upstream = "[provider.anthropic]\nupstream = \"https://example.com\"\n";
    let closed = format!("open_pools = false\n{upstream}");
    assert!(is_usable(&closed, "anthropic/sonnet") && !is_usable(&closed, "my/api"));
    assert!(is_usable(upstream, "my/api"));
}

#[test]
fn a_pool_may_name_a_provider_that_the_file_describes() {
    let own = "[provider.intranet]\nupstream = \"https://example.com\"\n";
    let text = format!("{own}[pool.\"a/b\"]\nprovider = \"intranet\"\n");
    let pools = settings(&text).pools;
    assert_eq!(pools[&pool_name("a/b")].provider.as_deref(), Some("intranet"));
}

#[test]
fn a_file_without_pools_is_worth_a_warning() {
    let (what, remedy) = settings("open_pools = false").without_pools().unwrap();
    assert!(what.starts_with("/x/standpipe.toml describes no pool"), "{what}");
    assert!(remedy.contains("remove open_pools = false"), "{remedy}");
    for fine in ["open_pools = true", "listen = \"127.0.0.1:1\"", "[pool.\"a/b\"]\nparallel = 1\n"]
    {
        assert_eq!(settings(fine).without_pools(), None, "{fine}");
    }
    assert_eq!(Settings::default().without_pools(), None);
}

#[test]
fn stores_by_url() {
    let url = |text: &str| text.parse::<StoreUrl>();
    assert_eq!(url("file"), Ok(StoreUrl::File(None)));
    assert_eq!(url("memory"), Ok(StoreUrl::Memory));
    for text in ["file:/var/lib/pipe", "file:///var/lib/pipe"] {
        assert_eq!(url(text), Ok(StoreUrl::File(Some(PathBuf::from("/var/lib/pipe")))), "{text}");
    }
    for text in ["redis://localhost", "rediss://u:p@h:6379/1", "redis://[::1]:6379"] {
        assert_eq!(url(text), Ok(StoreUrl::Redis(text.to_owned())), "{text}");
    }
    assert_eq!(url("etcd://a:2379"), Ok(StoreUrl::Etcd("etcd://a:2379".to_owned())));
    let short = settings("store = \"memory\"").store.unwrap();
    let long = settings("[store]\nurl = \"memory\"").store.unwrap();
    assert_eq!(short, long);
}

#[test]
fn a_margin_is_a_percentage_a_fraction_or_auto() {
    for (text, margin) in [
        ("0", Margin::Fixed(0)),
        ("0.0", Margin::Fixed(0)),
        ("\"0%\"", Margin::Fixed(0)),
        ("0.2", Margin::Fixed(200)),
        ("\"20%\"", Margin::Fixed(200)),
        ("\" 12.5 % \"", Margin::Fixed(125)),
        ("0.999", Margin::Fixed(999)),
        ("\"99.9%\"", Margin::Fixed(999)),
        ("\"auto\"", Margin::Auto),
    ] {
        let all = settings(&format!("[pool.\"a/b\"]\nparallel = 1\nmargin = {text}\n"));
        assert_eq!(all.pools[&pool_name("a/b")].margin, margin, "{text}");
    }
}

#[test]
fn a_pool_has_the_dialect_of_its_provider_or_its_name() {
    let pool = "openai/gpt";
    assert_eq!(dialect_of(pool, None), Dialect::OpenAi);
    assert_eq!(dialect_of(pool, Some("groq")), Dialect::Groq);
    assert_eq!(dialect_of("my/slots", None), Dialect::Generic);
}

#[test]
fn a_pool_may_lie_within_others() {
    let all = settings(
        "[pool.\"a/org\"]\nparallel = 9\n[pool.\"a/team\"]\nparallel = 5\nwithin = \"a/org\"\n\
         [pool.\"a/model\"]\nparallel = 2\nwithin = \"a/team\"\n",
    );
    let names = |pools: &[PoolName]| pools.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&all.ancestors(&pool_name("a/model"))), ["a/team", "a/org"]);
    assert!(all.ancestors(&pool_name("a/org")).is_empty());
    let config = all.pool_config(&pool_name("a/team")).unwrap();
    assert_eq!(config.within.map(|name| name.to_string()).as_deref(), Some("a/org"));
}
