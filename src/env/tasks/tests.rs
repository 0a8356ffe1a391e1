use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use prometheus_client::registry::Registry;

use super::*;
use crate::env::SeededRand;
use crate::env::SimClock;

fn env() -> Env {
    let (clock, rand) = (Arc::new(SimClock::new()), Arc::new(SeededRand::new(1)));
    Env { clock, rand, tasks: Tasks::new() }
}

#[tokio::test]
async fn own_thread_runs_tasks_until_shutdown() {
    let here = thread::current().id();
    let tasks = Tasks::on_own_thread("test-host").unwrap();
    let there = tasks.spawn("who", async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        (thread::current().id(), thread::current().name().map(str::to_owned))
    });
    let (id, name) = there.await.unwrap();
    assert_ne!(id, here);
    assert_eq!(name.as_deref(), Some("test-host"));
    tasks.shutdown().await;
    // Its thread ends a moment later; tasks spawned after that are dropped.
    while tasks.spawn("late", async {}).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_panic_is_counted_by_task_and_passed_on() {
    let tasks = Tasks::new();
    let beside = Tasks::new().reporting_to(&tasks);
    let mut registry = Registry::with_prefix("blockyard");
    tasks.health().register(&mut registry);
    assert!(tasks.spawn("well", async {}).await.is_ok());
    assert!(tasks.spawn("ill", async { panic!("one") }).await.unwrap_err().is_panic());
    assert!(beside.spawn("ill", async { panic!("two") }).await.unwrap_err().is_panic());
    let blocking = beside.spawn_blocking("blocked", || panic!("three"));
    assert!(blocking.await.unwrap_err().is_panic());
    let health = tasks.health();
    assert_eq!((health.panics("well"), health.panics("ill"), health.panics("blocked")), (0, 2, 1));
    assert_eq!(health.stopped(), []);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("\nblockyard_task_panics_total{task=\"ill\"} 2\n"), "{text}");
}

#[test]
fn violations_are_counted_by_invariant_and_the_first_are_kept() {
    let tasks = Tasks::new();
    let beside = Tasks::new().reporting_to(&tasks).health();
    let mut registry = Registry::with_prefix("blockyard");
    tasks.health().register(&mut registry);
    beside.expect_violation("I4");
    (0..40).for_each(|number| beside.violated("I4", &format!("seal {number}")));
    let kept = tasks.health().violations();
    assert_eq!(kept.len(), 16);
    assert_eq!(kept[0], "invariant I4 is violated: seal 0");
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let counted = "\nblockyard_invariant_violations_total{invariant=\"I4\"} 40\n";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn a_task_that_cannot_go_on_stops_what_it_served() {
    let tasks = Tasks::new();
    let said = Arc::new(Mutex::new(String::new()));
    let stop = |said: &Arc<Mutex<String>>| {
        let said = Arc::clone(said);
        move |why: &str| said.lock().unwrap().push_str(why)
    };
    tasks.spawn_or_stop("fine", async {}, stop(&said)).await.unwrap();
    assert_eq!((said.lock().unwrap().as_str(), tasks.health().stopped()), ("", vec![]));
    tasks.spawn_or_stop("journal", async { panic!("no way on") }, stop(&said)).await.unwrap();
    assert_eq!(said.lock().unwrap().as_str(), "no way on");
    assert_eq!(tasks.health().stopped(), [("journal", "no way on".to_owned())]);
    assert_eq!(tasks.health().panics("journal"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_supervised_task_is_started_again_after_a_pause_that_grows() {
    let env = env();
    let starts: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let (clock, noted) = (Arc::clone(&env.clock), Arc::clone(&starts));
    let task = env.supervise("loop", env.tasks.stopping(), move || {
        let (clock, noted) = (Arc::clone(&clock), Arc::clone(&noted));
        async move {
            let count = {
                let mut noted = noted.lock().unwrap();
                noted.push(clock.monotonic());
                noted.len()
            };
            match count {
                4 => clock.sleep(RESTART_PAUSE_MAX * 2).await,
                6 => return,
                _ => {}
            }
            panic!("start {count}");
        }
    });
    task.await.unwrap();
    let seconds: Vec<u64> = starts.lock().unwrap().iter().map(Duration::as_secs).collect();
    // The fourth run took two minutes: the pause after it is the shortest again.
    assert_eq!(seconds, [0, 1, 3, 7, 7 + 120 + 1, 7 + 120 + 1 + 2]);
    assert_eq!(env.tasks.health().panics("loop"), 5);
    assert_eq!(env.tasks.health().stopped(), []);
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_the_pause_of_a_supervised_task() {
    let env = env();
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let task = env.supervise("loop", env.tasks.stopping(), move || {
        let counted = Arc::clone(&counted);
        async move {
            counted.fetch_add(1, Ordering::Relaxed);
            panic!("again");
        }
    });
    while starts.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    env.tasks.shutdown().await;
    task.await.unwrap();
    assert_eq!((starts.load(Ordering::Relaxed), env.clock.monotonic()), (1, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn simulated_process_stands_still_and_is_killed() {
    let (tasks, control) = Tasks::controlled();
    let (steps, clock) = (Arc::new(AtomicUsize::new(0)), env().clock);
    let (counted, sleeps) = (Arc::clone(&steps), Arc::clone(&clock));
    let task = tasks.spawn("steps", async move {
        loop {
            sleeps.sleep(Duration::from_millis(10)).await;
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let steps_in = async |millis| {
        let before = steps.load(Ordering::Relaxed);
        clock.sleep(Duration::from_millis(millis)).await;
        steps.load(Ordering::Relaxed) - before
    };
    assert_eq!(steps_in(105).await, 10);
    control.pause();
    assert_eq!(steps_in(1000).await, 0);
    control.resume();
    assert_eq!(steps_in(100).await, 10);
    control.pause();
    control.kill();
    control.resume();
    assert!(control.is_killed());
    assert_eq!(steps_in(1000).await, 0);
    assert!(!task.is_finished(), "nobody hears of its end");
    assert_eq!(Arc::strong_count(&steps), 1, "what it had is dropped");
}
