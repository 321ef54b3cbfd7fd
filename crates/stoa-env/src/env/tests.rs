use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn timers_fire_in_order_when_time_passes_and_not_before() {
    let (env, world) = Env::simulated(1);
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for seconds in [3_u32, 1, 2] {
        let (env, told) = (env.clone(), told.clone());
        let sleep = env.sleep(SECOND * seconds);
        env.spawn(async move {
            sleep.await;
            told.send(seconds).unwrap();
        });
    }
    tokio::task::yield_now().await;
    assert_eq!(world.next_timer(), Some(SECOND));
    world.advance(SECOND - Duration::from_nanos(1));
    tokio::task::yield_now().await;
    assert!(heard.try_recv().is_err());
    world.advance(SECOND * 2);
    assert_eq!((heard.recv().await, heard.recv().await), (Some(1), Some(2)));
    assert_eq!(world.next_timer(), Some(Duration::from_nanos(1)));
    world.end_tasks();
    while world.next_timer().is_some() {
        tokio::task::yield_now().await;
    }
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn time_is_up_by_the_clock_of_the_world() {
    let (env, world) = Env::simulated(1);
    let late = env.clone();
    let never = env.spawn(async move { late.timeout(SECOND, std::future::pending::<()>()).await });
    while world.next_timer().is_none() {
        tokio::task::yield_now().await;
    }
    world.advance(SECOND);
    assert_eq!(never.await.unwrap(), None);
    assert_eq!(env.timeout(SECOND, std::future::ready(7)).await, Some(7));
    assert_eq!(world.next_timer(), None, "a timer that is dropped is gone");
    assert_eq!(Env::real().timeout(SECOND, std::future::ready(7)).await, Some(7));
}

#[test]
fn the_wall_clock_jumps_and_the_other_does_not() {
    let (env, world) = Env::simulated(1);
    let (wall, monotonic) = (env.now(), env.monotonic());
    world.jump_backwards(SECOND * 3600);
    assert_eq!(env.now(), wall - SECOND * 3600);
    world.jump_forwards(SECOND * 7200);
    world.advance(SECOND);
    assert_eq!(env.now(), wall + SECOND * 3601);
    assert_eq!(env.monotonic(), monotonic + SECOND);
    assert_eq!(env.unix_ms(), env.now_utc().timestamp_millis());
    let until = env.monotonic() + SECOND;
    assert!(env.park_time(until) < SECOND && !env.park_time(until).is_zero());
    world.advance(SECOND);
    assert!(env.park_time(until).is_zero());
}

#[test]
fn a_seed_decides_what_is_random() {
    let values = |seed| {
        let env = Env::simulated(seed).0;
        (env.random_u64(), env.uuid(), env.uuid())
    };
    assert_eq!(values(1), values(1));
    assert_ne!(values(1), values(2));
    let (_, one, two) = values(1);
    assert_ne!(one, two);
    assert_eq!(one.get_version_num(), 4);
}

#[tokio::test]
async fn blocking_work_is_a_task_in_a_simulation() {
    let here = std::thread::current().id();
    let there = || std::thread::current().id();
    let (env, _) = Env::simulated(1);
    assert_eq!(env.spawn_blocking(there).await.unwrap(), here);
    assert_ne!(Env::real().spawn_blocking(there).await.unwrap(), here);
}
