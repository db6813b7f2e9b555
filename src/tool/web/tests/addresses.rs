//! No spelling, redirect or name server leads to an address that is not public.

use std::net::Ipv6Addr;

use super::*;
use crate::tool::web::guard::is_public;

/// Hosts of this machine and of others that are not public, in every spelling that a parser may
/// know.
const HOSTS: [&str; 92] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0X7F000001",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.0.0.1.",
    "0x7f.1.",
    "127.255.255.254",
    "0",
    "0.0.0.0",
    "0x0",
    "00000000",
    "0.1.2.3",
    "10.0.0.1",
    "0xa.0.0.1",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "3232235521",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "169.254.43518",
    "0251.0376.0251.0376",
    "100.64.0.1",
    "100.127.255.255",
    "168.63.129.16",
    "192.0.0.1",
    "192.0.2.1",
    "192.31.196.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:0x7f.1]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:7f00:1::]",
    "[2001:0:53aa:64c::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[2001:2::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[3ffe::1]",
    "[2606:4700::5efe:7f00:1]",
    "[2606:4700::200:5efe:a9fe:a9fe]",
    "[100::1]",
    "[5f00::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fec0::1]",
    "[ff02::1]",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "intranet",
    "printer.local",
    "metadata.google.internal",
    "router.home.arpa",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "%31%32%37%2e0%2e0%2e1",
    "loc\u{ad}alⓗost",
];

/// Addresses in which the place of the host itself is disguised, or that are for other protocols.
const ADDRESSES: [&str; 24] = [
    "http://user@127.0.0.1:PORT/",
    "http://example.org@127.0.0.1:PORT/",
    "http://example.org:80@127.0.0.1:PORT/",
    "http://example.org%2f@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT#@example.org/",
    "http://127.0.0.1:PORT?@example.org/",
    "http://127.0.0.1:PORT\\@example.org/",
    "http:\\\\127.0.0.1:PORT\\",
    "http:127.0.0.1:PORT/",
    "http:/127.0.0.1:PORT/",
    "http:////127.0.0.1:PORT/",
    "ht\ntp://127.0.\t0.1:PORT/",
    "  http://127.0.0.1:PORT/ ",
    "HTTP://127.0.0.1:PORT/",
    "https://127.0.0.1:PORT/",
    "//127.0.0.1:PORT/",
    "127.0.0.1:PORT/",
    "ws://127.0.0.1:PORT/",
    "ftp://127.0.0.1:PORT/",
    "gopher://127.0.0.1:PORT/_GET",
    "file://127.0.0.1/etc/passwd",
    "data:text/plain,x",
    "view-source:http://127.0.0.1:PORT/",
    "http://example.org:25/",
];

/// Refuses for its own reason, before anything is resolved or connected to.
fn is_refused(result: &Result<String, String>) -> bool {
    let reasons = ["is refused: ", "must be a complete address"];
    matches!(result, Err(why) if reasons.iter().any(|reason| why.contains(reason)))
}

#[tokio::test]
async fn no_spelling_of_an_address_reaches_this_machine() {
    // All addresses of this machine, of both families.
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    let (address, connections) = counted(any).await;
    let builder = client_builder();
    let names = Names::new([&[PUBLIC, IpAddr::from(Ipv6Addr::LOCALHOST)]]);
    let tool = guarded(builder, settings(), names, is_public).unwrap();
    let hosts = HOSTS.map(|host| format!("http://{host}:PORT/"));
    let urls = hosts.into_iter().chain(ADDRESSES.map(str::to_owned));
    for url in urls {
        let url = url.replace("PORT", &address.port().to_string());
        let result = read(&tool, &url).await;
        assert!(is_refused(&result), "{url:?}: {result:?}");
    }
    // A name with these addresses, whatever it looks like.
    for name in [
        "example.org",
        "127.0.0.1.example.org",
        "xn--bcher-kva.example",
    ] {
        let result = read(&tool, &format!("http://{name}:{}/", address.port())).await;
        let why = "its name has no address on the public Internet";
        assert!(
            result.as_ref().unwrap_err().ends_with(why),
            "{name}: {result:?}"
        );
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

/// Every literal of the table, as the answer of a name server.
#[tokio::test]
async fn addresses_of_names_are_public_or_refused() {
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    let (address, connections) = counted(any).await;
    let mut tried = 0;
    for host in HOSTS {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        let Ok(ip) = literal.parse::<IpAddr>() else {
            continue;
        };
        assert!(!is_public(ip), "{ip}");
        let builder = client_builder();
        let tool = guarded(builder, settings(), Names::new([&[ip]]), is_public).unwrap();
        let result = read(&tool, &format!("http://example.org:{}/", address.port())).await;
        let why = "its name has no address on the public Internet";
        assert!(
            result.as_ref().unwrap_err().ends_with(why),
            "{ip}: {result:?}"
        );
        tried += 1;
    }
    assert!(tried >= 55, "{tried}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
    for public in [
        "1.1.1.1",
        "9.255.255.255",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00:1450:4001::1",
    ] {
        assert!(is_public(public.parse().unwrap()), "{public}");
    }
}

#[tokio::test]
async fn rebinding_and_mixed_names_reach_public_addresses_only() {
    let address = serve(|uri| match uri.path() {
        "/again" => response(302, &[("location", "/")], ""),
        _ => html("<p>public"),
    })
    .await;
    let private = SocketAddr::new(PRIVATE, address.port());
    let (_, connections) = counted(private).await;
    let url = |path: &str| format!("http://name.example:{}{path}", address.port());
    // The second look of a redirect to the same name is another answer.
    let tool = fetch_with(settings(), Names::new([&[PUBLIC], &[PRIVATE]]));
    let result = read(&tool, &url("/again")).await.unwrap_err();
    assert!(
        result.ends_with("no address on the public Internet"),
        "{result}"
    );
    // So is that of the next call.
    let tool = fetch_with(settings(), Names::new([&[PUBLIC], &[PRIVATE]]));
    assert!(read(&tool, &url("/")).await.unwrap().ends_with("public"));
    assert!(read(&tool, &url("/")).await.is_err());
    // Of several addresses, the private ones are not tried.
    let tool = fetch_with(settings(), Names::new([&[PRIVATE, PUBLIC, PRIVATE]]));
    assert!(read(&tool, &url("/")).await.unwrap().ends_with("public"));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn each_redirect_is_checked() {
    let address = serve(|uri| {
        let target = uri.query().unwrap_or_default();
        match uri.path() {
            "/loop" => response(307, &[("location", "/loop")], ""),
            "/to" => response(301, &[("location", target)], ""),
            "/refresh" => {
                let refresh = format!("0; url={target}");
                response(200, &[("refresh", &refresh)], "here")
            }
            _ => html("<p>arrived"),
        }
    })
    .await;
    let private = SocketAddr::new(PRIVATE, address.port());
    let (_, connections) = counted(private).await;
    let (tool, port) = (fetch(), address.port());
    let via = |target: &str| format!("http://name.example:{port}/to?{target}");
    for target in [
        format!("http://127.0.0.2:{port}/"),
        format!("//127.0.0.2:{port}/"),
        format!("http://0x7f.2:{port}/"),
        format!("http://2130706434:{port}/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://a@name.example:{port}/"),
        format!("ftp://name.example:{port}/"),
        "http://name.example:22/".to_owned(),
        "file:///etc/passwd".to_owned(),
        // The second redirect.
        via(&format!("http://127.0.0.2:{port}/")),
    ] {
        let result = read(&tool, &via(&target)).await;
        assert!(is_refused(&result), "{target}: {result:?}");
    }
    let looped = read(&tool, &format!("http://name.example:{port}/loop")).await;
    assert!(
        looped
            .unwrap_err()
            .starts_with("there are more than 3 redirects")
    );
    let arrived = read(&tool, &via(&via("/end"))).await.unwrap();
    assert!(
        arrived.contains(&format!("URL: http://name.example:{port}/end\n")),
        "{arrived}"
    );
    let refresh = format!("http://name.example:{port}/refresh?http://127.0.0.2:{port}/");
    assert!(read(&tool, &refresh).await.unwrap().ends_with("here"));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn hosts_are_allowed_and_denied_with_those_below_them() {
    let address = serve(|_| html("<p>read")).await;
    for (allow, deny, host, is_read) in [
        (None, vec![], "a.example", true),
        (Some(vec!["a.example"]), vec![], "a.example", true),
        (Some(vec!["A.example"]), vec![], "b.a.example.", true),
        (Some(vec!["a.example"]), vec![], "ba.example", false),
        (Some(vec![]), vec![], "a.example", false),
        (None, vec!["a.example"], "b.a.example", false),
        (None, vec!["a.example"], "example.a", true),
        (Some(vec!["example"]), vec!["a.example"], "a.example", false),
        (None, vec!["127.0.0.1"], "127.0.0.1", false),
    ] {
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let limited = FetchSettings {
            allow_hosts: allow.clone().map(owned),
            deny_hosts: owned(deny.clone()),
            ..settings()
        };
        let tool = fetch_with(limited, Names::new([&[PUBLIC]]));
        let result = read(&tool, &format!("http://{host}:{}/", address.port())).await;
        assert_eq!(
            result.is_ok(),
            is_read,
            "{allow:?} {deny:?} {host}: {result:?}"
        );
    }
}
