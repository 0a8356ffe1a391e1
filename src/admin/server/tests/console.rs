//! The console: its login by a link, what a session may do, and the lines of the audit log.

use serde_json::Value;
use serde_json::json;

use super::*;

/// The code of a new login link.
async fn code(served: &Served) -> String {
    let (status, made) = served.command("POST", "/admin/console", "").await;
    assert_eq!((status, &made["expires_s"]), (201, &json!(60)));
    let path = made["path"].as_str().unwrap();
    path.strip_prefix("/login#").unwrap().to_owned()
}

const JSON: &str = "Content-Type: application/json\r\n";

async fn log_in(served: &Served, code: &str, headers: &str) -> (u16, String, String) {
    let body = json!({ "code": code }).to_string();
    served.answer("POST", "/login", &format!("{JSON}{headers}"), &body).await
}

/// The header with which a browser shows the session that an answer sets.
fn cookie(head: &str) -> String {
    let set = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    format!("X-Blockyard-Console: 1\r\nCookie: {}\r\n", set.split(';').next().unwrap())
}

async fn session(served: &Served) -> String {
    let code = code(served).await;
    let (status, head, _) = log_in(served, &code, "").await;
    assert_eq!(status, 204, "{head}");
    cookie(&head)
}

fn refusal(text: &str) -> String {
    let body: Value = serde_json::from_str(text).unwrap();
    body["error"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_link_logs_one_browser_in() {
    let served = serve();
    served.ready().await;
    let code = code(&served).await;
    let (status, head, _) = log_in(&served, &code, "Sec-Fetch-Site: same-origin\r\n").await;
    assert_eq!(status, 204);
    let attributes = "; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict\r\n";
    assert!(
        head.contains("set-cookie: blockyard_console_0=") && head.contains(attributes),
        "{head}"
    );
    for used in [code.as_str(), "", "no code"] {
        let (status, head, text) = log_in(&served, used, "").await;
        assert_eq!((status, refusal(&text).as_str()), (403, "LoginRefused"));
        assert!(text.contains("run `blockyard console` again") && !head.contains("set-cookie"));
    }
    let (status, text) = served.ask("POST", "/login", JSON, "{}").await;
    assert_eq!((status, refusal(&text).as_str()), (400, "Invalid"));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn a_page_of_another_site_neither_logs_in_nor_out() {
    let served = serve();
    served.ready().await;
    let code = code(&served).await;
    for other in ["Origin: http://page.test\r\n", "Sec-Fetch-Site: same-site\r\n"] {
        let (status, _, text) = log_in(&served, &code, other).await;
        assert_eq!((status, refusal(&text).as_str()), (403, "OtherSite"), "{other}");
    }
    let (status, head, _) = log_in(&served, &code, "Origin: http://localhost\r\n").await;
    assert_eq!(status, 204, "the code was not used up: {head}");
    let shown = cookie(&head);
    let other = format!("{shown}Origin: http://page.test\r\n");
    assert_eq!(served.ask("POST", "/logout", &other, "").await.0, 403);
    assert_eq!(served.ask("GET", "/admin/partitions", &shown, "").await.0, 200);
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn a_session_reads_what_the_page_shows_and_nothing_else() {
    let served = serve();
    served.ready().await;
    let shown = session(&served).await;
    for path in ["/admin/partitions", "/admin/partitions/history"] {
        for (more, expected) in [
            ("", 200),
            ("Sec-Fetch-Site: same-origin\r\n", 200),
            ("Sec-Fetch-Site: same-site\r\n", 401),
            ("Origin: http://page.test\r\n", 401),
            ("Authorization: Bearer wrong\r\n", 401),
        ] {
            let headers = format!("{shown}{more}");
            assert_eq!(served.ask("GET", path, &headers, "").await.0, expected, "{path} {more}");
        }
        let foreign = shown.replace("X-Blockyard-Console: 1\r\n", "");
        assert_eq!(served.ask("GET", path, &foreign, "").await.0, 401, "{path}");
        assert_eq!(served.ask("POST", path, &shown, "").await.0, 401, "{path}");
        assert_eq!(served.get(path).await.0, 401, "{path}");
        assert_eq!(served.command("GET", path, "").await.0, 200, "{path}");
    }
    for (method, path) in [
        ("POST", "/admin/partitions/split"),
        ("POST", "/admin/console"),
        ("GET", "/admin/accounts"),
        ("GET", "/admin/accounts/configured?keys=true"),
        ("GET", "/admin/keys"),
        ("GET", "/admin/trace"),
        ("GET", "/admin/nothing"),
    ] {
        assert_eq!(served.ask(method, path, &shown, "").await.0, 401, "{path}");
    }
    let (status, head, _) = served.answer("POST", "/logout", &shown, "").await;
    assert!(status == 204 && head.contains("=; Path=/; Max-Age=0;"), "{head}");
    assert_eq!(served.ask("GET", "/admin/partitions", &shown, "").await.0, 401);
    served.env.tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn links_and_sessions_end() {
    let served = serve();
    served.ready().await;
    let (late, shown) = (code(&served).await, session(&served).await);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(log_in(&served, &late, "").await.0, 403);
    assert_eq!(served.ask("GET", "/admin/partitions", &shown, "").await.0, 200);
    tokio::time::advance(Duration::from_secs(8 * 60 * 60)).await;
    assert_eq!(served.ask("GET", "/admin/partitions", &shown, "").await.0, 401);
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn links_and_sessions_have_lines_in_the_audit_log() {
    let kept = Kept::new();
    let served = serve_with_log(kept.log());
    served.ready().await;
    let logged = |operation: &str, principal: &str| {
        let lines = kept.changes();
        let shown: Vec<_> = lines.iter().map(about).collect();
        assert_eq!(shown, [("session".into(), operation.into(), String::new())]);
        assert_eq!(lines[0]["principal"], json!({ "kind": principal }));
    };
    let code = code(&served).await;
    logged("MakeLoginLink", "admin_token");
    log_in(&served, "no code", "").await;
    assert_eq!(kept.changes().len(), 0, "a refused login changes nothing");
    let (_, head, _) = log_in(&served, &code, "").await;
    logged("OpenSession", "console");
    served.ask("GET", "/admin/partitions", &cookie(&head), "").await;
    assert_eq!(kept.changes().len(), 0);
    served.ask("POST", "/logout", &cookie(&head), "").await;
    logged("CloseSession", "console");
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn pages_are_served_under_the_policy() {
    let served = serve();
    let (status, head, _) = served.answer("GET", "/", "", "").await;
    assert!(status == 303 && head.contains("location: partitions\r\n"), "{head}");
    for path in ["/partitions", "/login", "/console/partitions.mjs", "/console/licences.txt"] {
        let (status, head, _) = served.answer("GET", path, "", "").await;
        assert_eq!(status, 200, "{path}");
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; ",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cross-origin-resource-policy: same-origin\r\n",
        ] {
            assert!(head.contains(header), "{path}: {header} is missing in {head}");
        }
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn logins_whose_bodies_do_not_come_hold_up_nobody() {
    tokio::time::pause();
    let served = serve();
    served.ready().await;
    let head = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 100\r\nConnection: close\r\n\r\n";
    let mut stalled = Vec::new();
    // More than are answered at a time.
    for _ in 0..WORK_MAX + 4 {
        let mut stream = served.connect.connect().await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(served.get("/login").await.0, 200);
    assert_eq!(served.command("POST", "/admin/console", "").await.0, 201);
    let (mut late, mut busy) = (0, 0);
    for mut stream in stalled {
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        match &status {
            b"HTTP/1.1 504" => late += 1,
            b"HTTP/1.1 503" => busy += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert_eq!((late, busy), (4, WORK_MAX));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn a_long_login_is_not_read() {
    let served = serve();
    served.ready().await;
    let body = json!({ "code": "x".repeat(2000) }).to_string();
    let (status, _, text) = served.answer("POST", "/login", JSON, &body).await;
    assert!(status == 400 || status == 413, "{status} {text}");
    served.env.tasks.shutdown().await;
}
