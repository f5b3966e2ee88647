//! The store on a TCP port: one thread per connection reads requests; whoever's request wakes others writes to them.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trompe_base::Rank;

use crate::absent::Ranks;
use crate::store::{Answer, Connection, Store};
use crate::wire::Request;

/// How often waits are looked at.
const TICK: Duration = Duration::from_millis(50);

/// A running store; it ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    port: u16,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    ending: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    streams: BTreeMap<Connection, TcpStream>,
    next: Connection,
}

impl Server {
    /// Starts a store for `ranks` on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be had or no thread started.
    pub fn start(ranks: Ranks) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let inner = Inner { store: Store::new(ranks), streams: BTreeMap::new(), next: 1 };
        let shared =
            Arc::new(Shared { began: now(), ending: AtomicBool::new(false), inner: Mutex::new(inner) });
        let mut threads = Vec::new();
        for (name, work) in [("store accept", 0), ("store clock", 1)] {
            let shared = Arc::clone(&shared);
            let listener = listener.try_clone()?;
            let body = move || if work == 0 { accept(&listener, &shared) } else { watch(&shared) };
            threads.push(std::thread::Builder::new().name(name.to_owned()).spawn(body)?);
        }
        Ok(Self { port, shared, threads })
    }

    /// Leaves in `board` what a rank needs that made a unique id itself; see the shim's board.
    pub fn post_ids(&self, board: &Path) {
        self.shared.lock().store.set_board(board.to_owned());
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Ranks that could not go on without another, which does not exist: `(rank, the other)`.
    #[must_use]
    pub fn wanted(&self) -> Vec<(Rank, Rank)> {
        self.shared.lock().store.wanted()
    }

    /// Tells the store that a rank does not exist any more: nobody waits for it from now on.
    pub fn gone(&self, rank: Rank) {
        let mut inner = self.shared.lock();
        let answers = inner.store.gone(rank);
        inner.send(answers);
    }

    /// Whether a rank gave others what only it could, so that they may wait for it again.
    #[must_use]
    pub fn is_needed(&self, rank: Rank) -> bool {
        self.shared.lock().store.is_needed(rank)
    }

    /// Keys that ranks waited for and nobody who exists had set, in the order in which they were given up on.
    #[must_use]
    pub fn assumed(&self) -> Vec<String> {
        let inner = self.shared.lock();
        inner.store.assumed().iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Release);
        for stream in self.shared.lock().streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)), TICK);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

impl Inner {
    fn send(&mut self, answers: Vec<Answer>) {
        for (to, bytes) in answers {
            // A client that is gone is noticed by its own thread.
            let _ = self.streams.get_mut(&to).map(|stream| stream.write_all(&bytes));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "ranks are given up on after real time; nothing simulated depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.ending() {
            return;
        }
        let _ = stream.set_nodelay(true);
        let Ok(reader) = stream.try_clone() else { continue };
        let connection = {
            let mut inner = shared.lock();
            let connection = inner.next;
            inner.next += 1;
            inner.streams.insert(connection, stream);
            connection
        };
        let shared = Arc::clone(shared);
        // The thread ends with its connection, which the server closes when it is dropped.
        let _ = std::thread::Builder::new()
            .name(format!("store {connection}"))
            .spawn(move || serve(connection, reader, &shared));
    }
}

fn serve(connection: Connection, stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    let mut validated = false;
    while let Ok(Some(request)) = Request::read(&mut reader) {
        validated |= matches!(request, Request::Validate(_));
        let at = shared.began.elapsed();
        let mut inner = shared.lock();
        match inner.store.handle(connection, request, at) {
            Ok(answers) if validated => inner.send(answers),
            _ => break,
        }
    }
    let mut inner = shared.lock();
    inner.store.leave(connection);
    if let Some(stream) = inner.streams.remove(&connection) {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn watch(shared: &Shared) {
    while !shared.ending() {
        std::thread::sleep(TICK);
        let mut inner = shared.lock();
        let answers = inner.store.tick(shared.began.elapsed());
        inner.send(answers);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn connect(server: &Server) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(b"\x00\xce\xf7\x85\x3c").unwrap();
        stream
    }

    fn receive<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
        let mut bytes = [0; N];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn one_client_wakes_another() {
        let server = Server::start(Ranks::new(2, &[Rank(0), Rank(1)])).unwrap();
        let (mut first, mut second) = (connect(&server), connect(&server));
        first.write_all(b"\x06\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0k").unwrap();
        second.write_all(b"\x01\x01\0\0\0\0\0\0\0k\x01\0\0\0\0\0\0\0v").unwrap();
        assert_eq!(receive(&mut first), [0]);
        first.write_all(b"\x03\x01\0\0\0\0\0\0\0k").unwrap();
        assert_eq!(receive(&mut first), *b"\x01\0\0\0\0\0\0\0v");
    }

    #[test]
    fn a_single_rank_does_not_wait_for_absent_ones() {
        let server = Server::start(Ranks::new(64, &[Rank(5)])).unwrap();
        let mut client = connect(&server);
        client.write_all(b"\x06\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0k").unwrap();
        assert_eq!(receive(&mut client), [0]);
        assert_eq!(server.assumed(), ["k"]);
    }

    #[test]
    fn strangers_are_disconnected() {
        let server = Server::start(Ranks::new(1, &[Rank(0)])).unwrap();
        let mut stranger = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
    }
}
