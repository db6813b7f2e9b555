//! Turns and queries per second: sustained rate, overhead, and throughput under overload.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::{
    ANSWERED, BenchResult, CALLING, at, chat,
    load::{Client, Pace, request},
    message,
    mock::Mock,
    place::{Served, processor_time},
};

const TURNS: u32 = 3;

/// Sends the question to the model directly.
fn direct() -> impl Fn(u64) -> Vec<u8> {
    let body = json!({ "model": "test",
        "messages": [{ "role": "user", "content": "Where is the function a defined?" }] });
    let body = body.to_string();
    move |_| request("POST", "/v1/chat/completions", "", &body)
}

/// Measures the sustained rate of durable turns, and the overhead of a turn.
pub(crate) async fn turns() -> BenchResult<()> {
    {
        let mock = Mock::with(&["--turns", "1"])?;
        let served = Served::start(&mock.url, "")?;
        let client = Client::new(served.address);
        let model = Client::new(mock.url.trim_start_matches("http://").parse()?);
        Pace {
            rate: 200,
            time: Duration::from_secs(2),
        }
        .send(&client, chat("warm"))
        .await;
        let directly = at(1_000).send(&model, direct()).await;
        let busy = served.processor_time()?;
        let through = at(1_000).send(&client, chat("one")).await;
        let busy =
            (served.processor_time()? - busy).as_secs_f64() * 1e6 / through.taken.0.len() as f64;
        println!(
            "1,000 turns/s, each a query in a session of its own, for {:?}:",
            at(1).time
        );
        println!(
            "  the model directly: {}{}",
            directly.taken,
            directly.failures()
        );
        println!(
            "  through the server: {}, {busy:.0} µs of processor time each{}",
            through.taken,
            through.failures()
        );
        let added = through
            .taken
            .share(0.99)
            .saturating_sub(directly.taken.share(0.99));
        println!("  added to the p99: {added:.1?}");
    }
    let mock = Mock::start(TURNS as usize)?;
    let served = Served::start(&mock.url, "")?;
    let client = Client::new(served.address);
    for rate in (1_000..).step_by(1_000) {
        let pace = at(rate / TURNS);
        let name = format!("t{rate}");
        let (began, busy) = (Instant::now(), served.processor_time()?);
        let ended = pace.send(&client, chat(&name)).await;
        let took = began.elapsed();
        let turns = (ended.taken.0.len() as u32 * TURNS) as f64 / took.as_secs_f64();
        let busy = (served.processor_time()? - busy).as_secs_f64() * 100.0 / took.as_secs_f64();
        println!(
            "queries of {TURNS} turns, {rate} turns/s offered for {:?}: {turns:.0} turns/s, a query {}, \
             {busy:.0} % of a core{}",
            pace.time,
            ended.taken,
            ended.failures()
        );
        // A growing backlog is no sustained rate.
        if ended.taken.share(0.99) > Duration::from_secs(1) || !ended.failed.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Measures the throughput of queries of [`TURNS`] turns under overload.
pub(crate) async fn overload() -> BenchResult<()> {
    /// The two measurements alternate this often, because the performance of disk and machine
    /// varies.
    const TIMES: usize = 3;
    let mock = Mock::start(TURNS as usize)?;
    let (mut most, mut at_most) = (0.0_f64, 0);
    for rate in (200..).step_by(100) {
        let through = goodput(&mock, rate).await?;
        if through > most {
            (most, at_most) = (through, rate);
        }
        // Clearly beyond its maximum.
        if through < f64::from(rate) * 0.8 {
            break;
        }
    }
    println!("most that goes through: {most:.0} queries/s, where {at_most} are offered");
    let mut through = [(1.0, Vec::new()), (2.0, Vec::new()), (4.0, Vec::new())];
    for _ in 0..TIMES {
        for (times, figures) in &mut through {
            let rate = if *times == 1.0 {
                f64::from(at_most)
            } else {
                *times * most
            };
            figures.push(goodput(&mock, rate as u32).await?);
        }
    }
    let [(_, most), over @ ..] = through.map(|(times, figures)| (times, median(figures)));
    println!("medians of {TIMES}, alternating: {most:.0} queries/s at the best rate");
    for (times, through) in over {
        let share = 100.0 * through / most;
        println!("  {through:.0} at {times} times as many, which is {share:.0} %");
    }
    Ok(())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

async fn goodput(mock: &Mock, rate: u32) -> BenchResult<f64> {
    let served = Served::start(&mock.url, "")?;
    let client = Client::new(served.address);
    let looker = Client::new(served.address);
    let pace = at(rate);
    let begin = Instant::now();
    let busy = || {
        BenchResult::Ok((
            served.processor_time()?,
            processor_time(std::process::id())?,
        ))
    };
    let busy_before = busy()?;
    let name = format!("o{rate}");
    let watched = async {
        tokio::time::sleep(pace.time / 4).await;
        let (before, since) = (served.figure(&looker, ANSWERED).await?, Instant::now());
        tokio::time::sleep_until(begin + pace.time).await;
        let answered = served.figure(&looker, ANSWERED).await? - before;
        BenchResult::Ok(answered as f64 / since.elapsed().as_secs_f64())
    };
    let (ended, through) = tokio::join!(pace.send(&client, message(&name)), watched);
    let through = through?;
    let (server, clients) = busy()?;
    let cores = |now: Duration, before| {
        (now - before).as_secs_f64() * 100.0 / begin.elapsed().as_secs_f64()
    };
    println!(
        "  of a core: the server {:.0} %, those who ask {:.0} %",
        cores(server, busy_before.0),
        cores(clients, busy_before.1)
    );
    let (taken, refused) = (ended.taken.0.len(), ended.refused.0.len());
    println!(
        "{rate} queries/s offered for {:?}: {through:.0} answered a second, {} MiB; {taken} taken: {}; {refused} \
         refused: {}{}",
        pace.time,
        served.resident()? >> 20,
        ended.taken,
        ended.refused,
        ended.failures()
    );
    Ok(through)
}

pub(crate) async fn refusals() -> BenchResult<()> {
    let mock = Mock::with(&["--turns", "1", "--latency", "600s"])?;
    let served = Served::start(&mock.url, "[server]\nmax_queries = 1\n")?;
    let client = Client::new(served.address);
    client.send(&message("first")(0)).await?;
    served.comes_to(&client, CALLING, 1).await?;
    let health = |_| request("GET", "/healthz", "", "");
    let unknown = |_| request("GET", "/unknown", "", "");
    for rate in [1_000, 5_000, 10_000] {
        let (refused, health, unknown) = (
            cost(&served, &client, rate, message("more")).await?,
            cost(&served, &client, rate, health).await?,
            cost(&served, &client, rate, unknown).await?,
        );
        println!("{rate} requests/s, and what each takes of a processor:");
        println!("  a refused message {refused}");
        println!("  `/healthz`        {health}");
        println!("  an unknown path   {unknown}");
    }
    Ok(())
}

async fn cost(
    served: &Served,
    client: &Arc<Client>,
    rate: u32,
    request: impl Fn(u64) -> Vec<u8>,
) -> BenchResult<String> {
    let busy = served.processor_time()?;
    let ended = at(rate).send(client, request).await;
    let busy = (served.processor_time()? - busy).as_secs_f64() * 1e6 / at(rate).requests() as f64;
    let times = if ended.refused.0.is_empty() {
        ended.taken
    } else {
        ended.refused
    };
    Ok(format!("{busy:.0} µs; {times}"))
}
