//! The store itself: what it holds, who waits, and what each request is answered. It does no I/O and reads no clock;
//! times are counted from any fixed moment.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use trompe_base::Rank;

use crate::absent::{self, Ranks};
use crate::wire::{self, NOT_READY, READY, Request, STOP_WAITING, WAIT_CANCELED};

/// How long nothing must have changed before a key that nobody has set counts as set by an absent rank, when several
/// ranks exist: longer than the slowest of them may be behind the others between two requests (importing a framework
/// on a busy machine).
const QUIET: Duration = Duration::from_secs(15);
/// The same when only one rank exists: nobody else can set it.
const QUIET_ALONE: Duration = Duration::from_millis(200);

/// A connection's number.
pub(crate) type Connection = u64;

/// Bytes to send to a connection.
pub(crate) type Answer = (Connection, Vec<u8>);

/// What a connection waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wait {
    /// All of these keys.
    Keys(Vec<Vec<u8>>),
    /// The rest of a barrier.
    Barrier(Vec<u8>),
}

/// A connection that has sent nonsense; it is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Keys, values, queues, and who waits for them.
#[derive(Debug)]
pub(crate) struct Store {
    ranks: Ranks,
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    queues: BTreeMap<Vec<u8>, VecDeque<Vec<u8>>>,
    /// Arrivals at each barrier that is not complete.
    barriers: BTreeMap<Vec<u8>, i64>,
    complete: BTreeSet<Vec<u8>>,
    waiting: BTreeMap<Connection, (Wait, Duration)>,
    changed: Duration,
    /// Keys that were taken as set by an absent rank after a silence.
    assumed: Vec<Vec<u8>>,
    /// Ranks that gave others what only they could.
    needed: BTreeSet<u32>,
    /// Folder where the giver of a unique id finds the one that the others get.
    board: Option<PathBuf>,
}

impl Store {
    pub(crate) fn new(ranks: Ranks) -> Self {
        Self {
            ranks,
            values: BTreeMap::new(),
            queues: BTreeMap::new(),
            barriers: BTreeMap::new(),
            complete: BTreeSet::new(),
            waiting: BTreeMap::new(),
            changed: Duration::ZERO,
            assumed: Vec::new(),
            needed: BTreeSet::new(),
            board: None,
        }
    }

    /// A rank does not exist any more.
    pub(crate) fn gone(&mut self, rank: Rank) -> Vec<Answer> {
        self.ranks.leave(rank);
        self.wake()
    }

    /// Whether a rank gave others what only it could.
    pub(crate) fn is_needed(&self, rank: Rank) -> bool {
        self.needed.contains(&rank.0)
    }

    /// Keys that nobody who exists has set, in the order in which they were given up on.
    pub(crate) fn assumed(&self) -> &[Vec<u8>] {
        &self.assumed
    }

    /// Ranks that cannot go on without another, which does not exist: `(rank, the other)`.
    pub(crate) fn wanted(&self) -> Vec<(Rank, Rank)> {
        self.values.keys().filter_map(|key| absent::wanted(key)).collect()
    }

    /// Answers a request; the answers may go to other connections as well, which waited for it.
    pub(crate) fn handle(
        &mut self,
        from: Connection,
        request: Request,
        now: Duration,
    ) -> Result<Vec<Answer>, Refused> {
        let mut out = Vec::new();
        let mut wake = false;
        match request {
            Request::Validate(magic) if magic == wire::MAGIC => self.changed = now,
            Request::Validate(_) => return Err(Refused),
            Request::Ping(nonce) => out.extend(nonce),
            Request::Set(key, value) => {
                self.set(key, value);
                wake = true;
            }
            Request::MultiSet(pairs) => {
                for (key, value) in pairs {
                    self.set(key, value);
                }
                wake = true;
            }
            Request::CompareSet { key, expected, desired } => {
                let answer = match self.values.get(&key) {
                    None if expected.is_empty() => {
                        self.set(key, desired.clone());
                        wake = true;
                        desired
                    }
                    None => expected,
                    Some(found) if *found == expected => {
                        self.set(key, desired.clone());
                        wake = true;
                        desired
                    }
                    Some(found) => found.clone(),
                };
                wire::put_bytes(&mut out, &answer);
            }
            Request::Get(key) => wire::put_bytes(&mut out, &self.value(&key).unwrap_or_default()),
            Request::MultiGet(keys) => {
                for key in keys {
                    wire::put_bytes(&mut out, &self.value(&key).unwrap_or_default());
                }
            }
            Request::Add(key, amount) => {
                out.extend(self.add(key, amount).to_le_bytes());
                wake = true;
            }
            Request::Append(key, more) => {
                self.values.entry(key).or_default().extend(more);
                wake = true;
            }
            Request::Check(keys) => {
                let ready = keys.iter().all(|key| self.is_ready(key));
                out.push(if ready { READY } else { NOT_READY });
            }
            Request::Wait(keys) => {
                if keys.iter().all(|key| self.is_ready(key)) {
                    out.push(STOP_WAITING);
                } else {
                    self.waiting.insert(from, (Wait::Keys(keys), now));
                }
            }
            Request::CancelWait => {
                self.waiting.remove(&from);
                out.push(WAIT_CANCELED);
            }
            Request::CountKeys => out.extend((self.values.len() as i64).to_le_bytes()),
            Request::Delete(key) => {
                let removed = self.values.remove(&key).is_some() || self.queues.remove(&key).is_some();
                out.extend(i64::from(removed).to_le_bytes());
            }
            Request::QueuePush(key, value) => {
                self.queues.entry(key).or_default().push_back(value);
                wake = true;
            }
            Request::QueuePop(key) => match self.queues.get_mut(&key).and_then(VecDeque::pop_front) {
                Some(value) => {
                    out.extend(1_u64.to_le_bytes());
                    wire::put_bytes(&mut out, &value);
                }
                None => out.extend(0_u64.to_le_bytes()),
            },
            Request::QueueLength(key) => {
                let length = self.queues.get(&key).map_or(0, VecDeque::len);
                out.extend((length as i64).to_le_bytes());
            }
            Request::ListKeys => {
                out.extend((self.values.len() as u64).to_le_bytes());
                for key in self.values.keys() {
                    wire::put_bytes(&mut out, key);
                }
            }
            Request::Barrier(key, size) => {
                self.arrive(from, key, size, now);
                wake = true;
            }
        }
        let mut answers = Vec::new();
        if !out.is_empty() {
            answers.push((from, out));
        }
        if wake {
            self.changed = now;
            answers.extend(self.wake());
        }
        Ok(answers)
    }

    /// A connection has ended.
    pub(crate) fn leave(&mut self, connection: Connection) {
        self.waiting.remove(&connection);
    }

    /// Time passes: what has waited in silence for long enough is answered for the absent ranks.
    pub(crate) fn tick(&mut self, now: Duration) -> Vec<Answer> {
        if self.ranks.absent() == 0 {
            return Vec::new();
        }
        let quiet = if self.ranks.present() > 1 { QUIET } else { QUIET_ALONE };
        let over = |since: Duration| now.saturating_sub(since) >= quiet;
        if !over(self.changed) {
            return Vec::new();
        }
        let waits: Vec<_> =
            self.waiting.values().filter(|(_, since)| over(*since)).map(|(wait, _)| wait.clone()).collect();
        for wait in waits {
            match wait {
                Wait::Keys(keys) => {
                    for key in keys {
                        if !self.is_ready(&key) && !absent::is_own(&key) {
                            self.assumed.push(key.clone());
                            self.values.insert(key.clone(), absent::unique_id(&key, None));
                        }
                    }
                }
                Wait::Barrier(key) => {
                    self.complete.insert(key);
                }
            }
        }
        self.wake()
    }

    fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.needed.extend(absent::sole_giver(&key));
        if key == absent::WORLD_KEY
            && let Some(ranks) = absent::told_world(&value)
        {
            self.ranks = ranks;
        }
        let made = absent::is_unique_id(&key) && value.len() == trompe_base::UniqueId::BYTES;
        if made {
            let id = self.unique_id(&key);
            self.post(&value, &id);
            self.values.insert(key, id);
        } else {
            self.values.insert(key, value);
        }
    }

    /// Sets the folder for [`Store::post`].
    pub(crate) fn set_board(&mut self, board: PathBuf) {
        self.board = Some(board);
    }

    /// Leaves the unique id that stands for `given` where its giver, which does not read it from here, looks for it:
    /// PyTorch's older backend makes the id in one rank, which goes on with its own.
    fn post(&self, given: &[u8], id: &[u8]) {
        let Some(board) = &self.board else { return };
        let path = board.join(trompe_base::UniqueId::note(given));
        let draft = path.with_extension("new");
        // Without it the giver goes on with its own id after a while.
        let _ = fs::write(&draft, id).and_then(|()| fs::rename(&draft, &path));
    }

    fn unique_id(&self, key: &[u8]) -> Vec<u8> {
        let members = absent::members_keys(key).find_map(|name| self.values.get(&name));
        absent::unique_id(key, members.map(Vec::as_slice))
    }

    fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        if let Some(value) = self.values.get(key) {
            return Some(value.clone());
        }
        if absent::is_unique_id(key) {
            return Some(self.unique_id(key));
        }
        if absent::is_lost(&self.ranks, key) {
            return Some(absent::GONE.to_vec());
        }
        self.values.get(&absent::mirrored(&self.ranks, key)?).cloned()
    }

    fn is_ready(&self, key: &[u8]) -> bool {
        self.values.contains_key(key)
            || self.queues.get(key).is_some_and(|queue| !queue.is_empty())
            || self.value(key).is_some()
    }

    fn add(&mut self, key: Vec<u8>, amount: i64) -> i64 {
        let text =
            self.values.get(&key).and_then(|value| std::str::from_utf8(value).ok()?.parse::<i64>().ok());
        let before = text.unwrap_or_else(|| match absent::counts_ranks(&key) && amount > 0 {
            true => i64::from(self.ranks.absent()),
            false => 0,
        });
        let sum = before.wrapping_add(amount);
        self.values.insert(key, sum.to_string().into_bytes());
        sum
    }

    /// A member comes to a barrier of `size` members. As many as exist must come; of a smaller group it is not known
    /// how many exist, so it also ends when nobody comes any more.
    fn arrive(&mut self, from: Connection, key: Vec<u8>, size: i64, now: Duration) {
        let arrived = self.barriers.entry(key.clone()).or_default();
        *arrived += 1;
        let all = *arrived >= size
            || (size == i64::from(self.ranks.size()) && *arrived >= i64::from(self.ranks.present()));
        self.values.insert(key.clone(), arrived.to_string().into_bytes());
        if all {
            self.complete.insert(key.clone());
        }
        self.waiting.insert(from, (Wait::Barrier(key), now));
    }

    fn wake(&mut self) -> Vec<Answer> {
        let done = |wait: &Wait| match wait {
            Wait::Keys(keys) => keys.iter().all(|key| self.is_ready(key)),
            Wait::Barrier(key) => self.complete.contains(key),
        };
        let ready: Vec<Connection> = self
            .waiting
            .iter()
            .filter(|(_, (wait, _))| done(wait))
            .map(|(connection, _)| *connection)
            .collect();
        for connection in &ready {
            self.waiting.remove(connection);
        }
        ready.into_iter().map(|connection| (connection, vec![STOP_WAITING])).collect()
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
