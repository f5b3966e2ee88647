//! Events that other threads raise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};

use trompe_base::Duration;

use crate::event::PayloadEvent;
use crate::scheduler::Scheduler;

/// Moves what has arrived for one event into the scheduler.
pub(crate) type Mailbox = Box<dyn FnMut(&mut Scheduler) + Send>;

/// Raises one event from another thread; may be cloned and sent.
#[derive(Debug)]
pub struct AsyncSender<P> {
    channel: Sender<P>,
    mail: Arc<AtomicBool>,
}

impl<P> Clone for AsyncSender<P> {
    fn clone(&self) -> Self {
        Self { channel: self.channel.clone(), mail: Arc::clone(&self.mail) }
    }
}

impl<P> AsyncSender<P> {
    /// Lets the event fire with `value` in the next tick that the engine begins; false when the engine is gone.
    pub fn send(&self, value: P) -> bool {
        let sent = self.channel.send(value).is_ok();
        self.mail.store(true, Ordering::Release);
        sent
    }
}

/// Both ends of the way to one event.
pub(crate) fn channel<P: Send + 'static>(
    event: PayloadEvent<P>,
    mail: Arc<AtomicBool>,
) -> (AsyncSender<P>, Mailbox) {
    let (channel, inbox) = mpsc::channel();
    let mailbox = move |scheduler: &mut Scheduler| {
        for value in inbox.try_iter() {
            scheduler
                .send(event, Duration::ZERO, value)
                .expect("between two ticks every group is still to come");
        }
    };
    (AsyncSender { channel, mail }, Box::new(mailbox))
}
