//! Several processes, graphs, and traces that are not whole.

use trompe_base::{DType, DeviceIndex, EventId, Rank, StreamId};
use trompe_collate::{CollateError, Options, collate};
use trompe_testkit::{Launch, TraceBuilder};
use trompe_trace::job::{Action, Ending, JobTrace};
use trompe_trace::reader::WorkerTrace;
use trompe_trace::record::{Collective, CollectiveKind, Record};

fn job(traces: &[WorkerTrace]) -> JobTrace {
    collate(traces, &Options::default()).unwrap()
}

fn collective(t: &mut TraceBuilder, communicator: u32, kind: CollectiveKind, sequence: u64) {
    let api = t.api("nccl/ncclAllReduce/emulated");
    let collective = Collective {
        kind,
        communicator,
        sequence,
        count: 1000,
        dtype: DType::F32,
        operator: 0,
        peer: 0,
        group: 0,
    };
    t.record(&Record::Collective { api, stream: StreamId(0), collective });
}

/// A rank of two that all-reduces over the world and gathers over a communicator with its own members.
fn rank(rank: u32, extra: bool) -> WorkerTrace {
    let mut t = TraceBuilder::new(100 + rank);
    t.meta("environment", &format!(r#"{{"RANK": "{rank}", "WORLD_SIZE": "2"}}"#));
    let device = DeviceIndex(0);
    // Ids differ from process to process, identities do not.
    let ids = if rank == 0 { [5, 6] } else { [6, 5] };
    let members: Vec<u8> = [0u32, 1].iter().flat_map(|m| m.to_le_bytes()).collect();
    t.record(&Record::Communicator { id: ids[0], identity: 77, size: 2, rank, device, members: &[] });
    t.record(&Record::Communicator { id: ids[1], identity: 88, size: 2, rank, device, members: &members });
    collective(&mut t, ids[0], CollectiveKind::AllReduce, 0);
    collective(&mut t, ids[1], CollectiveKind::AllGather, 0);
    if extra {
        t.launch(Launch::default());
    }
    t.finish()
}

#[test]
fn equal_ranks_share_a_template_and_communicators() {
    let job = job(&[rank(1, false), rank(0, false)]);
    assert_eq!((job.templates.len(), job.ranks.len()), (1, 2));
    assert_eq!(job.ranks[0].communicators, [0, 1]);
    assert_eq!(job.ranks[1].communicators, [0, 1]);
    let members: Vec<_> = job.communicators.iter().map(|c| c.members.clone()).collect();
    assert_eq!(members, [vec![Rank(0), Rank(1)], vec![Rank(0), Rank(1)]]);
    let bytes: Vec<_> = job.templates[0]
        .events
        .iter()
        .map(|e| if let Action::Collective { collective, .. } = &e.action { collective.bytes.0 } else { 0 })
        .collect();
    // The gathered buffer holds what both ranks give.
    assert_eq!(bytes, [4000, 8000]);
}

#[test]
fn what_is_so_on_several_ranks_is_said_once() {
    let about = |job: &JobTrace| -> Vec<String> {
        let texts = job.notes.iter().map(|note| note.text.as_str());
        texts.filter_map(|text| text.split_once(": no operators").map(|(who, _)| who.to_owned())).collect()
    };
    assert_eq!(about(&job(&[rank(0, false), rank(1, true)])), ["all 2 ranks that ran"]);
    assert_eq!(about(&job(&[rank(0, false)])), [""; 0]);
}

#[test]
fn different_ranks_keep_their_own_templates() {
    let job = job(&[rank(0, true), rank(1, false)]);
    assert_eq!(job.ranks.iter().map(|r| r.template).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn absent_ranks_are_assumed_and_named() {
    let job = job(&[rank(0, false)]);
    assert_eq!(
        job.ranks.iter().map(|r| (r.template, r.emulated)).collect::<Vec<_>>(),
        [(0, true), (0, false)]
    );
    assert!(job.notes.iter().any(|n| n.text == "1 of 2 ranks did not run"), "{:?}", job.notes);
}

/// Rank `rank` of 16 in two nodes: all-reduces over everybody, its node (twice) and its column.
fn meshed(rank: u32) -> WorkerTrace {
    let mut t = TraceBuilder::new(100 + rank);
    t.meta("environment", &format!(r#"{{"TROMPE_RANK": "{rank}", "TROMPE_WORLD_SIZE": "16"}}"#));
    let node: Vec<u32> = (0..8).map(|place| rank / 8 * 8 + place).collect();
    let column = vec![rank % 8, rank % 8 + 8];
    let groups = [vec![], node.clone(), node, column];
    for (id, members) in groups.iter().enumerate() {
        let bytes: Vec<u8> = members.iter().flat_map(|m| m.to_le_bytes()).collect();
        let size = if members.is_empty() { 16 } else { members.len() as u32 };
        let place = members.iter().position(|member| *member == rank).map_or(rank, |place| place as u32);
        // An identity of its own for each group of each place in the mesh.
        let identity = 1000 * id as u64 + u64::from(members.first().copied().unwrap_or(0));
        let device = DeviceIndex(0);
        let id = id as u32;
        t.record(&Record::Communicator { id, identity, size, rank: place, device, members: &bytes });
        collective(&mut t, id, CollectiveKind::AllReduce, 0);
    }
    t.finish()
}

#[test]
fn absent_ranks_have_the_groups_of_their_place() {
    let job = job(&[meshed(0), meshed(13)]);
    assert_eq!((job.ranks.len(), job.templates.len()), (16, 1));
    let check = |rank: usize, expect: [&[u32]; 4]| {
        let rows = &job.ranks[rank].communicators;
        let members = |row: &usize| job.communicators[*row].members.iter().map(|rank| rank.0).collect();
        let found: Vec<Vec<u32>> = rows.iter().map(members).collect();
        assert_eq!(found, expect, "rank {rank}");
        assert_ne!(rows[1], rows[2], "two groups of the same members are two");
    };
    let all: Vec<u32> = (0..16).collect();
    let (first, second) = (&all[..8], &all[8..]);
    check(0, [&all, first, first, &[0, 8]]);
    check(5, [&all, first, first, &[5, 13]]);
    check(8, [&all, second, second, &[0, 8]]);
    check(15, [&all, second, second, &[7, 15]]);
    // Rank 5 is in the column that rank 13, which ran, has announced.
    assert_eq!(job.ranks[5].communicators[3], job.ranks[13].communicators[3]);
    assert!(job.notes.iter().all(|note| !note.text.contains("not known")), "{:?}", job.notes);
}

#[test]
fn processes_without_device_work_are_left_out() {
    let mut loader = TraceBuilder::new(7);
    loader.meta("python.version", "3.11");
    let mut worker = TraceBuilder::new(8);
    worker.launch(Launch::default());
    let job = job(&[loader.finish(), worker.finish()]);
    assert_eq!((job.templates.len(), job.ranks.len()), (1, 1));
    assert!(job.notes.iter().all(|n| !n.text.contains("processes")), "{:?}", job.notes);
}

#[test]
fn a_job_without_device_work_says_so() {
    let error = collate(&[TraceBuilder::default().finish()], &Options::default()).unwrap_err();
    assert_eq!(error, CollateError::NoDeviceWork { processes: 1 });
    assert!(error.to_string().contains("none of the 1 recorded processes"), "{error}");
}

#[test]
fn a_killed_process_is_reported_as_far_as_it_got() {
    let mut t = TraceBuilder::default();
    t.launch(Launch::default());
    let job = job(&[t.cut()]);
    assert_eq!(job.templates[0].ending, Ending::Cut);
    assert!(job.notes.iter().any(|n| n.text.contains("without an end mark")), "{:?}", job.notes);
}

#[test]
fn unknown_and_unsupported_things_are_named() {
    let mut t = TraceBuilder::default();
    t.launch(Launch { name: "_Z10mysteriousPf", ..Launch::default() });
    let api = t.api("cusolver/cusolverDnDgesvd/unsupported");
    t.record(&Record::Call { api, arguments: [0; 4] });
    t.record(&Record::Dropped { records: 12, reason: "no room" });
    let job = job(&[t.finish()]);
    for text in
        ["mysterious (1)", "cusolverDnDgesvd", "12 records were lost: no room", "no operators were recorded"]
    {
        assert!(job.notes.iter().any(|n| n.text.contains(text)), "{text}: {:?}", job.notes);
    }
    assert!(job.templates[0].calls.contains(&("cusolver/cusolverDnDgesvd/unsupported".to_owned(), 1)));
}

#[test]
fn a_graph_is_captured_once_and_expands_at_each_launch() {
    let mut t = TraceBuilder::default();
    let (api, side) = (t.api("cudart/cudaGraphLaunch/emulated"), StreamId(3));
    let event = EventId(1);
    t.record(&Record::CaptureBegin { stream: StreamId(0), graph: 1 });
    t.launch(Launch { name: "first", ..Launch::default() });
    // Another stream joins by waiting for an event of the capture.
    t.record(&Record::EventRecord { api, event, version: 0, stream: StreamId(0) });
    t.record(&Record::StreamWaitEvent { api, stream: side, event, version: 0 });
    t.record(&Record::Set { api, stream: side, bytes: 64, value: 0 });
    t.record(&Record::CaptureEnd { stream: StreamId(0), graph: 1 });
    t.record(&Record::GraphInstantiate { graph: 1, executable: 9 });
    t.record(&Record::GraphLaunch { api, executable: 9, stream: side });
    t.record(&Record::GraphLaunch { api, executable: 9, stream: side });
    t.launch(Launch { name: "after", ..Launch::default() });
    t.record(&Record::GraphLaunch { api, executable: 10, stream: side });
    let job = job(&[t.finish()]);
    let actions: Vec<_> = job.templates[0].events.iter().map(|e| &e.action).collect();
    let graph = Action::Graph { stream: side, operations: vec![0, 1] };
    assert_eq!(actions[..7], [&Action::Host; 7]);
    assert_eq!(actions[7..9], [&graph, &graph]);
    assert!(matches!(actions[9], Action::Enqueue { operation: 2, .. }));
    assert!(
        job.notes.iter().any(|n| n.text.contains("1 launches of graphs whose capture")),
        "{:?}",
        job.notes
    );
}

#[test]
fn collectives_of_a_graph_are_numbered_at_each_launch() {
    let mut t = TraceBuilder::default();
    let api = t.api("cudart/cudaGraphLaunch/emulated");
    collective(&mut t, 4, CollectiveKind::AllReduce, 0);
    t.record(&Record::CaptureBegin { stream: StreamId(0), graph: 1 });
    t.launch(Launch { name: "before", ..Launch::default() });
    collective(&mut t, 4, CollectiveKind::AllReduce, 1);
    collective(&mut t, 4, CollectiveKind::Send, 0);
    t.record(&Record::CaptureEnd { stream: StreamId(0), graph: 1 });
    t.record(&Record::GraphInstantiate { graph: 1, executable: 9 });
    for _ in 0..2 {
        t.record(&Record::GraphLaunch { api, executable: 9, stream: StreamId(0) });
    }
    let job = job(&[t.finish()]);
    let numbers: Vec<_> = job.templates[0]
        .events
        .iter()
        .filter_map(|e| {
            if let Action::Collective { collective, .. } = &e.action {
                Some(collective.sequence)
            } else {
                None
            }
        })
        .collect();
    // One before the graph, then a collective and a send in each launch.
    assert_eq!(numbers, [0, 1, 0, 2, 1]);
    // The communicator was never announced: it has this process alone.
    assert_eq!((job.communicators.len(), job.communicators[0].members.len()), (1, 1));
}

/// A rank of two that makes `kinds` over the world, each from a line of its own.
fn caller(rank: u32, kinds: &[CollectiveKind], whole: bool) -> WorkerTrace {
    let mut t = TraceBuilder::new(200 + rank);
    t.meta("environment", &format!(r#"{{"RANK": "{rank}", "WORLD_SIZE": "2"}}"#));
    let members: Vec<u8> = [0u32, 1].iter().flat_map(|m| m.to_le_bytes()).collect();
    t.record(&Record::Communicator {
        id: 5,
        identity: 77,
        size: 2,
        rank,
        device: DeviceIndex(0),
        members: &members,
    });
    for (number, kind) in kinds.iter().enumerate() {
        let line = format!("train.py:{}", 10 * (rank as usize + 1) + number);
        let place = number as u32 + 1;
        t.record(&Record::Name { table: trompe_trace::record::NameTable::Place, id: place, name: &line });
        t.record(&Record::Place { place });
        collective(&mut t, 5, *kind, number as u64);
        t.record(&Record::Place { place: 0 });
    }
    if whole { t.finish() } else { t.cut() }
}

#[track_caller]
fn disagree(first: &[CollectiveKind], second: &[CollectiveKind], whole: bool, expect: &[&str]) {
    let job = job(&[caller(0, first, whole), caller(1, second, whole)]);
    let errors: Vec<&str> = job
        .notes
        .iter()
        .filter(|note| note.severity == trompe_trace::job::Severity::Error)
        .map(|note| note.text.as_str())
        .collect();
    assert_eq!(errors.len(), usize::from(!expect.is_empty()), "{errors:?}");
    for text in expect {
        assert!(errors[0].contains(text), "{errors:?}");
    }
}

#[test]
fn ranks_that_disagree_are_told_with_both_places() {
    use CollectiveKind::{AllGather, AllReduce, Recv, Send};
    disagree(&[AllReduce, AllGather], &[AllReduce, AllGather], true, &[]);
    disagree(
        &[AllReduce, AllGather],
        &[AllGather, AllReduce],
        true,
        &["call 0 of a communicator of ranks 0, 1", "at train.py:10 on rank 0", "at train.py:20 on rank 1"],
    );
    disagree(
        &[AllReduce, AllReduce],
        &[AllReduce],
        true,
        &["rank 0 makes call 1", "train.py:11", "rank 1 never does: it makes 1 calls"],
    );
    // A trace that was cut says nothing about what would have come.
    disagree(&[AllReduce, AllReduce], &[AllReduce], false, &[]);
    // Both send to rank 0 of the communicator and nobody receives; rank 0's send to itself is its own business.
    disagree(&[AllReduce], &[AllReduce, Send], true, &["rank 1 makes a send", "with rank 0"]);
    disagree(&[AllReduce], &[AllReduce, Recv], true, &["rank 1 makes a receive"]);
}
