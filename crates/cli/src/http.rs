//! An endpoint for scrapes: HTTP/1.1, read-only, and bounded whatever clients do.
//!
//! Plain sockets instead of a crate: all that is served is one text by GET, and the crates for that leave open how long a
//! client may take for its request. A fixed number of threads take connections, one request each; further connections
//! wait in the kernel's backlog. A client has a limit of time for its request and for the answer, whatever it sends.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// What clients may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that are served at once.
    pub connections: usize,
    /// Bytes of a request's head. A body is not read.
    pub request: usize,
    /// For a request, and once more for the answer.
    pub time: Duration,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Media type.
    pub kind: &'static str,
    /// Body; not sent to HEAD.
    pub body: Vec<u8>,
}

impl Answer {
    /// A line of text.
    pub fn text(status: u16, line: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: format!("{line}\n").into_bytes() }
    }
}

/// Serves until the process ends. `answer` is called with the path of each request, by several threads.
pub fn serve(listener: &TcpListener, limits: Limits, answer: &(dyn Fn(&str) -> Answer + Sync)) {
    std::thread::scope(|scope| {
        for _ in 0..limits.connections {
            scope.spawn(|| {
                loop {
                    match listener.accept() {
                        // What goes wrong with a client is its own affair.
                        Ok((stream, _)) => drop(client(stream, limits, answer)),
                        // No file descriptor is free, or a client has gone: not to be tried again at once.
                        Err(_) => std::thread::sleep(Duration::from_millis(50)),
                    }
                }
            });
        }
    });
}

/// Takes the request of a client and answers it.
fn client(mut stream: TcpStream, limits: Limits, answer: &dyn Fn(&str) -> Answer) -> io::Result<()> {
    let (answer, body) = match request(&mut stream, limits)? {
        Ok(Request { path, head }) => (answer(&path), !head),
        Err(refused) => (refused, true),
    };
    let reason = match answer.status {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Bad Request",
    };
    let allow = if answer.status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let mut text = format!(
        "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}X-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len()
    )
    .into_bytes();
    if body {
        text.extend_from_slice(&answer.body);
    }
    let until = Instant::now() + limits.time;
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(rest)? {
            0 => break,
            written => rest = &rest[written..],
        }
    }
    // A connection that is closed with bytes unread is reset, and the client may lose the answer.
    stream.shutdown(Shutdown::Write)?;
    let (mut unread, mut some) = (limits.request, [0; 1024]);
    while unread > 0 {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut some)? {
            0 => break,
            read => unread = unread.saturating_sub(read),
        }
    }
    Ok(())
}

/// Time until a moment.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// Without the query.
    path: String,
    /// Only the head of the answer.
    head: bool,
}

/// Reads the head of a request; an answer if it is none.
fn request(stream: &mut TcpStream, limits: Limits) -> io::Result<Result<Request, Answer>> {
    let until = Instant::now() + limits.time;
    let (mut head, mut some) = (Vec::new(), [0; 1024]);
    loop {
        if let Some(end) = end_of_head(&head) {
            return Ok(parse(&head[..end]));
        }
        if head.len() >= limits.request {
            return Ok(Err(Answer::text(431, "the request is too long")));
        }
        let read = left(until).and_then(|left| {
            stream.set_read_timeout(Some(left))?;
            stream.read(&mut some)
        });
        match read {
            Ok(0) => return Ok(Err(Answer::text(400, "the request has no end"))),
            Ok(read) => head.extend_from_slice(&some[..read]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(Err(Answer::text(408, "the request took too long")));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Where the empty line is that ends a head.
fn end_of_head(head: &[u8]) -> Option<usize> {
    let crlf = head.windows(4).position(|four| four == b"\r\n\r\n");
    crlf.into_iter().chain(head.windows(2).position(|two| two == b"\n\n")).min()
}

/// The request line; the other lines say nothing that matters here.
fn parse(head: &[u8]) -> Result<Request, Answer> {
    let bad = |what: &str| Answer::text(400, what);
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| bad("the request line is not text"))?.trim_end_matches('\r');
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words.as_slice() else { return Err(bad("expected METHOD PATH HTTP/1.1")) };
    if !version.starts_with("HTTP/1.") || line.chars().any(char::is_control) {
        return Err(bad("expected METHOD PATH HTTP/1.1"));
    }
    let head = match *method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(Answer::text(405, "only GET and HEAD")),
    };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(bad("expected a path"));
    }
    Ok(Request { path: path.into(), head })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const LIMITS: Limits = Limits { connections: 2, request: 4096, time: Duration::from_millis(300) };

    /// An endpoint that lives as long as the process.
    fn endpoint() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = |path: &str| match path {
            "/metrics" => Answer::text(200, "all is well"),
            "/long" => Answer { body: vec![b'x'; 8 << 20], ..Answer::text(200, "") },
            _ => Answer::text(404, "nothing here"),
        };
        std::thread::spawn(move || serve(&listener, LIMITS, &answer));
        address
    }

    /// What comes back until the end.
    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // The endpoint may answer before it has all of it.
        let _ = stream.write_all(request);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    #[test]
    fn requests_are_answered_whatever_they_are() {
        let address = endpoint();
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 5000]].concat();
        for (request, status) in [
            (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(), "200 OK"),
            (b"GET /metrics?name=x HTTP/1.0\n\n", "200 OK"),
            (b"GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405 Method Not Allowed"),
            (b"GET /metrics\r\n\r\n", "400 Bad Request"),
            (b"GET metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400 Bad Request"),
            (b"GET /\x01 HTTP/1.1\r\n\r\n", "400 Bad Request"),
            (b"\xff\xfe\r\n\r\n", "400 Bad Request"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "408 Request Timeout"),
            (b"", "408 Request Timeout"),
            (&long, "431 Request Header Fields Too Large"),
        ] {
            let answer = ask(address, request);
            let begin = &request[..request.len().min(30)];
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{begin:?}: {answer}");
        }
        let head = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 12\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask(address, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nall is well\n"));
    }

    #[test]
    fn slow_clients_hold_a_connection_for_a_time_only() {
        let address = endpoint();
        // Each of them would take all connections for ever: a byte now and then, nothing, or an answer not read.
        let mut idle: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
        idle[0].write_all(b"GET /long HTTP/1.1\r\n\r\n").unwrap();
        idle[1].write_all(b"GET /metrics HT").unwrap();
        assert!(ask(address, b"GET /metrics HTTP/1.1\r\n\r\n").contains("all is well"));
    }

    #[test]
    fn many_clients_wait_their_turn() {
        let address = endpoint();
        let answers: Vec<String> = std::thread::scope(|scope| {
            let ask = || ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
            let clients: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        assert!(answers.iter().all(|answer| answer.ends_with("all is well\n")));
    }
}
