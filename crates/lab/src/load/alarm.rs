//! Waits until a planned moment, to tens of microseconds. The runtime's own timer counts whole
//! milliseconds, which is more than the latencies to be measured.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use soldonce_clock::BootTime;
use tokio::io::unix::AsyncFd;

/// A timer of the kernel on the boot clock.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        #[expect(
            deprecated,
            reason = "its heir is unsafe code; an owned fd, never replaced, is sound"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self { timer })
    }

    /// Waits until the boot clock reads `moment`; at once if it is past.
    ///
    /// # Cancel safety
    /// A dropped wait leaves the timer set; the next wait sets it anew.
    pub(crate) async fn wait_until(&self, moment: BootTime) -> io::Result<()> {
        let since_boot = moment.since(BootTime::default());
        let at = Timespec {
            tv_sec: i64::try_from(since_boot.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(since_boot.subsec_nanos()),
        };
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: at,
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &value)?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0_u8; 8];
            let read =
                ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?));
            if let Ok(rung) = read {
                return rung.map(|_bytes| ());
            }
        }
    }
}
