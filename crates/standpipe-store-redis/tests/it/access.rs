//! Getting in: certificates, passwords, rights, and servers that are not meant. What is wrong is
//! told clearly, without a secret.

use standpipe_servers::{Options as ServerOptions, Pair, Sentinel, Server};
use standpipe_store::{Log, Position, Snapshot, SnapshotId, Store, StoreError};
use standpipe_store_redis::{Address, Options, RedisStore};

use crate::support::texts;
use crate::support::{
    beat, configure, failed, insist, key, member, parallel, pool, store, take_all,
};

fn with_authority(server: &Server, authority: &Server) -> RedisStore {
    let address: Address = server.url().parse().unwrap();
    let pem = std::fs::read(authority.ca_file()).unwrap();
    RedisStore::new(address.with_authority(pem), Options::default())
}

#[test]
fn an_encrypted_server_is_used_and_a_stranger_in_its_place_is_not() {
    let options = ServerOptions { tls: true, ..ServerOptions::default() };
    let (server, stranger) = (Server::start_with(options.clone()), Server::start_with(options));
    let mut inside = member(&with_authority(&server, &server));
    insist(&mut inside, vec![configure(vec![parallel(2)])]);
    assert_eq!(take_all(&mut inside, 9).len(), 2);
    let error = failed(member(&with_authority(&server, &stranger)).submit(vec![beat()]));
    assert!(error.to_string().contains("certificate"), "{error}");
    assert!(error.to_string().contains(&server.url()), "{error}");
    let plain = server.url().replace("rediss://", "redis://");
    failed(member(&store(&plain)).submit(vec![beat()]));
}

/// Returns what is wrong when a new member submits, and what to do.
fn refused(store: &RedisStore) -> (String, String) {
    let text = failed(member(store).submit(vec![beat()])).to_string();
    let (what, remedy) = text.split_once("; ").unwrap_or_else(|| panic!("no remedy: {text}"));
    for library in ["os error", "invalid peer", "corrupt message", "DnsName", "Other(", "ERR"] {
        assert!(!text.contains(library), "{text}");
    }
    (what.to_owned(), remedy.to_owned())
}

/// Checks both parts of the error that a new member gets.
#[track_caller]
fn assert_refused(store: &RedisStore, what: &str, remedy: &str) {
    let (said, to_do) = refused(store);
    assert!(said.contains(what) && to_do.contains(remedy), "{said}; {to_do}");
}

#[test]
fn a_certificate_that_is_not_accepted_names_the_setting() {
    let options = ServerOptions { tls: true, ..ServerOptions::default() };
    let (server, stranger) = (Server::start_with(options.clone()), Server::start_with(options));
    let (what, remedy) = refused(&with_authority(&server, &stranger));
    assert!(what.contains("signed by an unknown authority"), "{what}");
    assert!(remedy.starts_with("set `ca` in [store]"), "{remedy}");
    assert!(what.contains(&server.url()), "{what}");
    // The server presents the authority itself.
    let with = |args: &[&str]| {
        let args = args.iter().map(ToString::to_string).collect();
        Server::start_with(ServerOptions { tls: true, args, ..ServerOptions::default() })
    };
    let own = ["--tls-cert-file", "ca.pem", "--tls-key-file", "ca.key"];
    let server = with(&own);
    let ca = with_authority(&server, &server);
    assert_refused(&ca, "the certificate of an authority", "a certificate that the authority");
    let server = with(&["--tls-auth-clients", "yes"]);
    let ca = with_authority(&server, &server);
    assert_refused(&ca, "requires a certificate of its clients", "`tls-auth-clients no`");
}

#[test]
fn a_url_with_the_wrong_scheme_is_told_the_right_one() {
    let tls = Server::start_with(ServerOptions { tls: true, ..ServerOptions::default() });
    let plain = Server::start();
    let without = tls.url().replace("rediss://", "redis://");
    // It may send an alert first, which is not a reply.
    let (what, remedy) = refused(&store(&without));
    let is_known = ["before its first reply", "cannot be read"];
    assert!(is_known.iter().any(|known| what.contains(known)), "{what}");
    assert!(remedy.contains("write rediss instead of redis"), "{remedy}");
    let address: Address = plain.url().replace("redis://", "rediss://").parse().unwrap();
    let pem = std::fs::read(tls.ca_file()).unwrap();
    let with = RedisStore::new(address.with_authority(pem), Options::default());
    // A plain server answers when the first message of TLS has a line break by chance.
    let (what, remedy) = refused(&with);
    let is_known = ["does not speak TLS", "did not answer in time"];
    assert!(is_known.iter().any(|known| what.contains(known)), "{what}");
    assert!(remedy.contains("write redis instead of rediss"), "{remedy}");
    let sentinel = format!("redis+sentinel://{}/mymaster", plain.address());
    assert_refused(&store(&sentinel), "is not a Sentinel", "the port of a Sentinel (26379)");
    assert!(refused(&store(&sentinel)).1.ends_with(&plain.url()), "names the URL that works");
    let socket = plain.directory().join("nope.sock");
    let socket = format!("redis+unix://{}", socket.display());
    assert_refused(&store(&socket), "does not exist", "check the path");
}

#[test]
fn a_sentinel_is_told_how_its_url_begins() {
    let set = Sentinel::start();
    assert_refused(
        &store(&set.sentinels[0].url()),
        "has no command EVALSHA",
        "write redis+sentinel://host:26379/mymaster",
    );
    let unknown = format!("redis+sentinel://{}/other", set.sentinels[0].address());
    assert_refused(&store(&unknown), "knows no master `other`", "SENTINEL MASTERS");
}

/// All that a user needs, as `docs/redis.md` lists it.
const RIGHTS: &str = "eval evalsha hget hmget hset get set getrange setrange append strlen rename \
                      del exists pexpire pexpireat time zadd zrangebyscore zrem publish subscribe \
                      info ping wait";

/// Those without which less is told or it is told later, but everything is decided as before.
const COMFORTS: [&str; 6] = ["info", "publish", "subscribe", "wait", "zadd", "zrem"];

const PASSWORD: &str = "a-secret-of-ours";

fn guarded() -> Server {
    let rights: Vec<String> = RIGHTS.split_whitespace().map(|right| format!("+{right}")).collect();
    let user = format!("user us on >{PASSWORD} ~standpipe:* &standpipe:* {}", rights.join(" "));
    let acl = Some(format!("user default off\n{user}"));
    Server::start_with(ServerOptions { acl, ..ServerOptions::default() })
}

fn as_us(server: &Server) -> RedisStore {
    as_us_at(&server.url())
}

fn as_us_at(url: &str) -> RedisStore {
    let address: Address = url.parse().unwrap();
    RedisStore::new(address.with_user("us").with_password(PASSWORD), Options::default())
}

/// Everything that a store does to a server.
fn full_use(store: &RedisStore) -> Result<(), StoreError> {
    let mut member = member(store);
    member.submit(vec![configure(vec![parallel(2)])])?;
    for _ in 0..3 {
        member.submit(vec![beat(); 200])?;
        store.pool_log(&pool()).write_snapshot(&member.replica().snapshot())?;
    }
    store.pool_log(&pool()).read(Position::START)?;
    // One too large for a call; what is in it does not matter.
    member.submit(vec![beat()])?;
    let mark = SnapshotId { at: member.replica().position(), hash: 1 };
    let large = Snapshot { id: mark, bytes: vec![7; 100_000] };
    store.pool_log(&pool()).write_snapshot(&large)?;
    store.pool_log(&pool()).wake_sessions(&[1]);
    // That one is damaged: whoever reads it puts the log aside.
    crate::support::member(store).submit(vec![beat()])?;
    store.pools()?;
    store.server_info()?;
    store.reset(&pool())?;
    Ok(())
}

#[test]
fn a_user_needs_exactly_the_rights_that_are_listed() {
    let server = guarded();
    full_use(&as_us(&server)).unwrap();
    for right in RIGHTS.split_whitespace() {
        server.run(&["ACL", "SETUSER", "us", &format!("-{right}")]);
        server.run(&["FLUSHALL"]);
        server.run(&["SCRIPT", "FLUSH"]);
        let used = full_use(&as_us(&server));
        match COMFORTS.contains(&right) {
            true => used.unwrap(),
            false => {
                let error = failed(used);
                assert!(!error.is_transient(), "without {right}: {error}");
                let told = error.to_string();
                assert!(told.contains(&format!("'{right}'")), "without {right}: {told}");
                assert!(told.contains("right"), "without {right}: {told}");
                assert!(!told.contains(PASSWORD), "{told}");
            }
        }
        server.run(&["ACL", "SETUSER", "us", &format!("+{right}")]);
    }
}

/// The users of `docs/redis.md`, as lines of an ACL file.
fn documented_users() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/redis.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, command) = page.split_once("--user default").expect("the page has a user");
    let (command, _) = command.split_once("```").unwrap();
    let words = format!("--user default{command}").replace(['\\', '\''], "");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    words.replace("--user ", "\nuser ").trim_start().to_owned()
}

/// Redis 7.0 loads its append-only file as the user `default`, and skips what that may not do.
#[test]
fn a_server_with_the_users_of_the_page_keeps_the_ledger_over_a_restart() {
    let acl = Some(documented_users());
    let mut server =
        Server::start_with(ServerOptions { acl, persistent: true, ..ServerOptions::default() });
    let address: Address = server.url().parse().unwrap();
    let address = address.with_user("standpipe").with_password("a-long-password");
    let store = RedisStore::new(address, Options::default());
    let mut process = member(&store);
    insist(&mut process, vec![configure(vec![parallel(2)])]);
    assert_eq!(take_all(&mut process, 9).len(), 2);
    server.stop();
    server.start_again();
    assert!(server.run(&["KEYS", "standpipe:{*:head"]).contains("head"), "{}", server.log());
    assert_eq!(take_all(&mut process, 9).len(), 0, "both slots are still in use");
    let stranger = RedisStore::new(server.url().parse().unwrap(), Options::default());
    assert!(refused(&stranger).0.contains("password"), "a password is required");
}

#[test]
fn a_user_of_another_database_needs_one_right_more() {
    let server = guarded();
    let store = as_us_at(&format!("{}/3", server.url()));
    server.run(&["ACL", "SETUSER", "us", "-select"]);
    for error in [failed(full_use(&store)), failed(store.pools())] {
        assert!(!error.is_transient(), "{error}");
        assert!(error.to_string().contains("+select"), "{error}");
        assert!(error.to_string().contains("database 3"), "{error}");
        assert!(!error.to_string().contains(PASSWORD), "{error}");
    }
    server.run(&["ACL", "SETUSER", "us", "+select"]);
    full_use(&as_us_at(&format!("{}/3", server.url()))).unwrap();
    assert!(server.run(&["INFO", "keyspace"]).contains("db3:"), "the pool is in database 3");
    let wrong = failed(as_us_at(&format!("{}/9999", server.url())).pools());
    assert!(!wrong.is_transient() && wrong.to_string().contains("database 9999"), "{wrong}");
}

#[test]
fn a_user_kept_from_our_keys_is_told_so() {
    let server = guarded();
    server.run(&["ACL", "SETUSER", "us", "resetkeys", "~other:*"]);
    let error = failed(member(&as_us(&server)).submit(vec![beat()]));
    assert!(!error.is_transient(), "{error}");
    assert!(error.to_string().contains("right"), "{error}");
}

#[test]
fn a_wrong_password_is_told_without_showing_it() {
    let server = guarded();
    let address: Address = server.url().parse().unwrap();
    let wrong = address.clone().with_user("us").with_password("a-wrong-secret");
    let required = "requires a password; give it in the store's URL";
    for (address, says) in [(wrong, "does not accept the user and password"), (address, required)] {
        let error =
            failed(member(&RedisStore::new(address, Options::default())).submit(vec![beat()]));
        let told = format!("{error} {error:?}");
        assert!(!error.is_transient(), "{told}");
        assert!(told.contains(says), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
}

#[test]
fn a_replica_that_may_not_be_written_to_is_told_with_the_remedy() {
    let pair = Pair::start();
    let error = failed(member(&store(&pair.replica.url())).submit(vec![beat()]));
    assert!(error.to_string().contains("read-only replica"), "{error}");
    assert!(error.to_string().contains("redis+sentinel://"), "{error}");
    assert!(!store(&pair.replica.url()).server_info().unwrap().is_master);
}

/// Something that Standpipe would never write, in the place of one of the keys.
fn put_foreign(server: &Server, part: &str) {
    let foreign = key(part);
    let wrong = match part {
        "head" => ["SET", foreign.as_str(), "theirs"],
        _ => ["LPUSH", foreign.as_str(), "theirs"],
    };
    server.run(&wrong);
}

#[test]
fn what_somebody_else_put_in_our_place_is_kept_and_the_pool_counts_as_full() {
    for part in ["head", "log", "snapshot", "previous"] {
        let server = Server::start();
        put_foreign(&server, part);
        let store = store(&server.url());
        let mut member = member(&store);
        insist(&mut member, vec![configure(vec![parallel(2)])]);
        assert_eq!(take_all(&mut member, 9).len(), 0, "{part}: of a limit that counts as full");
        let aside = server.run(&["KEYS", &key(&format!("damaged:*:{part}"))]);
        let kind = if part == "head" { "string" } else { "list" };
        assert_eq!(server.run(&["TYPE", &aside]), kind, "{part}: {aside}");
        assert_eq!(server.run(&["PTTL", &aside]), "-1", "{part}: theirs has no end");
        assert!(texts(&store).contains("is damaged"), "{part}");
    }
}

#[test]
fn who_only_looks_tells_what_somebody_else_put_in_our_place_and_leaves_it_alone() {
    for part in ["head", "log", "snapshot", "previous"] {
        let server = Server::start();
        put_foreign(&server, part);
        let before = server.run(&["DEBUG", "DIGEST"]);
        let options = Options { quarantine_damaged: false, ..Options::default() };
        let store = RedisStore::new(server.url().parse().unwrap(), options);
        let error = failed(member(&store).submit(vec![beat()]));
        assert!(error.is_damaged(), "{part}: {error}");
        assert_eq!(server.run(&["DEBUG", "DIGEST"]), before, "{part} was changed");
    }
}

#[test]
fn the_eviction_policy_can_be_seen() {
    let args = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let args = args.map(str::to_owned).to_vec();
    let server = Server::start_with(ServerOptions { args, ..ServerOptions::default() });
    let seen = store(&server.url()).server_info().unwrap();
    assert_eq!(seen.eviction.as_deref(), Some("allkeys-lru"));
    assert!(seen.is_master);
}
