//! Chakra execution traces of a small job, read back.

use std::collections::BTreeMap;

use trompe_base::{Bytes, DType, Duration, EventId, Flops, Rank, StreamId, ThreadIndex};
use trompe_interop::chakra::wire::{CommunicationType, Node, NodeType};
use trompe_interop::chakra::{self, ChakraError, Costs, Graph, ImportError};
use trompe_trace::descriptor::{Descriptor, Direction, Other, Work};
use trompe_trace::job::{
    Action, CallClass, Collective, Communicator, HostEvent, JobTrace, Operation, RankInstance, RankTemplate,
    Stream,
};
use trompe_trace::record::{CollectiveKind, StreamKind};

/// Device work takes 1.4 µs, collectives 100 µs, hosts what was recorded.
struct Fixed;

impl Costs for Fixed {
    fn operation(&self, _template: usize, _operation: usize) -> Duration {
        Duration::from_picos(1_400_000)
    }

    fn collective(&self, _collective: &Collective, _members: &[Rank], _ends: (u32, u32)) -> Duration {
        Duration::from_micros(100)
    }

    fn host(&self, event: &HostEvent) -> Duration {
        event.gap
    }
}

fn event(gap: u64, action: Action) -> HostEvent {
    let gap = Duration::from_micros(gap);
    HostEvent { thread: ThreadIndex(0), gap, call: CallClass::Launch, site: 0, action }
}

fn kernel(stream: u32) -> Action {
    Action::Enqueue { stream: StreamId(stream), operation: 0, blocking: false }
}

fn collective(stream: u32, kind: CollectiveKind, peer: u32, group: u64) -> Action {
    let (bytes, dtype) = (Bytes(4096), DType::F32);
    let collective = Collective { kind, communicator: 0, sequence: 0, bytes, dtype, peer, group };
    Action::Collective { stream: StreamId(stream), collective }
}

/// Two ranks in one communicator, with these events.
fn nodes(rank: u32, events: Vec<HostEvent>) -> Vec<Node> {
    let work = Work { read: Bytes(64), written: Bytes(64), flops: Flops(1000) };
    let operation = Operation {
        name: "kernel".into(),
        short_name: String::new(),
        descriptor: Descriptor::Other(Other { work, blocks: 1, threads: 1 }),
        direction: Direction::Forward,
        launch: None,
    };
    let stream = |id, kind| Stream { id: StreamId(id), device: 0, priority: 0, kind };
    let streams = vec![
        stream(0, StreamKind::Legacy),
        stream(1, StreamKind::NonBlocking),
        stream(2, StreamKind::NonBlocking),
        stream(3, StreamKind::Blocking),
    ];
    let template = RankTemplate { operations: vec![operation], streams, events, ..RankTemplate::default() };
    // The second rank did not run: it is like the first.
    let instance = |emulated| RankInstance { template: 0, communicators: vec![0], emulated };
    let job = JobTrace {
        templates: vec![template],
        ranks: vec![instance(true), instance(false)],
        communicators: vec![Communicator { members: vec![Rank(0), Rank(1)], purpose: None }],
        ..JobTrace::default()
    };
    let mut bytes = Vec::new();
    chakra::write_rank(&job, Rank(rank), &Fixed, &mut bytes).unwrap();
    assert_eq!(chakra::groups(&job), "{\n  \"1\": [0, 1]\n}\n");
    let (head, nodes) = chakra::read(bytes.as_slice()).unwrap();
    assert_eq!(head.version, "0.0.4");
    // A file cut anywhere is an error, never a shorter trace.
    for end in 1..bytes.len() {
        let whole = chakra::read(&bytes[..end]).map(|(_, nodes)| nodes.len());
        assert!(
            matches!(whole, Err(ChakraError::Truncated { .. }))
                || whole.is_ok_and(|count| count < nodes.len())
        );
    }
    nodes
}

#[test]
fn hosts_streams_and_events() {
    let nodes = nodes(
        0,
        vec![
            event(5, kernel(1)),
            event(0, kernel(1)),
            event(0, Action::RecordEvent { stream: StreamId(1), event: EventId(7), version: 1 }),
            event(0, Action::WaitEvent { stream: StreamId(2), event: EventId(7), version: 1 }),
            event(0, kernel(2)),
            event(3, Action::SynchronizeStream { stream: StreamId(2) }),
            event(2, kernel(1)),
        ],
    );
    let rows: Vec<(i32, &[u64], u64)> =
        nodes.iter().map(|node| (node.kind, node.data.as_slice(), node.duration_micros)).collect();
    let compute = i32::from(NodeType::Compute);
    let expect: [(i32, &[u64], u64); 7] = [
        (compute, &[], 5),
        // 1.4 + 1.4 µs become 1 + 2.
        (compute, &[0], 1),
        (compute, &[1, 0], 2),
        (compute, &[2, 0], 1),
        (compute, &[0], 3),
        (compute, &[4, 3], 2),
        (compute, &[2, 5], 1),
    ];
    assert_eq!(rows, expect);
    assert_eq!((nodes[1].integer("num_ops"), nodes[1].integer("tensor_size")), (Some(1000), Some(128)));
    assert_eq!((nodes[0].integer("is_cpu_op"), nodes[1].integer("is_cpu_op")), (Some(1), Some(0)));
}

#[test]
fn the_default_stream_holds_back_and_is_held_back() {
    let nodes =
        nodes(0, vec![event(0, kernel(3)), event(0, kernel(0)), event(0, kernel(1)), event(0, kernel(3))]);
    let deps: Vec<&[u64]> = nodes.iter().map(|node| node.data.as_slice()).collect();
    assert_eq!(deps, [&[][..], &[0], &[], &[0, 1]]);
}

#[test]
fn collectives_and_messages() {
    use CollectiveKind::{AllGather, AllReduce, Recv, Send};
    let nodes = nodes(
        1,
        vec![
            event(0, collective(1, AllReduce, 0, 0)),
            event(0, collective(1, AllGather, 0, 0)),
            event(0, collective(1, Send, 1, 9)),
            event(7, collective(1, Recv, 1, 9)),
            event(0, kernel(1)),
        ],
    );
    let kind = |node: &Node| (node.kind, node.integer("comm_type"), node.integer("comm_size"));
    let coded = |code: CommunicationType| Some(i64::from(i32::from(code)));
    assert_eq!(
        kind(&nodes[0]),
        (NodeType::Collective.into(), coded(CommunicationType::AllReduce), Some(4096))
    );
    // An all-gather is counted by what one rank puts in.
    assert_eq!(
        kind(&nodes[1]),
        (NodeType::Collective.into(), coded(CommunicationType::AllGather), Some(2048))
    );
    assert_eq!((nodes[0].text("pg_name"), nodes[0].duration_micros), (Some("1"), 100));
    // A group call's messages run side by side, and what follows waits for both.
    assert_eq!((nodes[2].kind, nodes[3].kind), (NodeType::Send.into(), NodeType::Receive.into()));
    assert_eq!((nodes[2].data.as_slice(), nodes[3].data.as_slice()), (&[1][..], &[1][..]));
    // The host's time between them comes after the call.
    assert_eq!((nodes[4].duration_micros, nodes[5].data.as_slice()), (7, &[2, 3, 4][..]));
    let ends = |node: &Node| (node.integer("comm_src"), node.integer("comm_dst"), node.integer("comm_tag"));
    assert_eq!(ends(&nodes[2]), (Some(1), Some(0), Some(0)));
    assert_eq!(ends(&nodes[3]), (Some(0), Some(1), Some(0)));
}

/// What ranks send and receive, as (source, destination, tag), when the first of `ranks` ran and the others are like it.
fn messages(ranks: u32, calls: &[(CollectiveKind, u32)]) -> [Vec<[Option<i64>; 3]>; 2] {
    let events = calls.iter().map(|&(kind, peer)| event(0, collective(1, kind, peer, 9))).collect();
    let streams = vec![Stream { id: StreamId(1), device: 0, priority: 0, kind: StreamKind::NonBlocking }];
    let template = RankTemplate { streams, events, ..RankTemplate::default() };
    let instance = |rank| RankInstance { template: 0, communicators: vec![0], emulated: rank == 0 };
    let job = JobTrace {
        templates: vec![template],
        ranks: (0..ranks).map(instance).collect(),
        communicators: vec![Communicator { members: (0..ranks).map(Rank).collect(), purpose: None }],
        ..JobTrace::default()
    };
    let mut found = [Vec::new(), Vec::new()];
    for rank in 0..ranks {
        let mut bytes = Vec::new();
        chakra::write_rank(&job, Rank(rank), &Fixed, &mut bytes).unwrap();
        for node in chakra::read(bytes.as_slice()).unwrap().1 {
            let ends = ["comm_src", "comm_dst", "comm_tag"].map(|name| node.integer(name));
            found[usize::from(node.kind == i32::from(NodeType::Receive))].push(ends);
        }
    }
    found.iter_mut().for_each(|list| list.sort_unstable());
    found
}

#[test]
fn messages_of_ranks_that_did_not_run_meet() {
    use CollectiveKind::{Recv, Send};
    let check = |ranks, calls: &[(CollectiveKind, u32)], first: (i64, i64)| {
        let [sent, received] = messages(ranks, calls);
        assert_eq!(sent, received, "{ranks} {calls:?}");
        assert_eq!(sent.len(), ranks as usize * calls.len() / 2);
        assert_eq!((sent[1][0], sent[1][1]), (Some(first.0), Some(first.1)), "{sent:?}");
    };
    // Round a ring, one way and both; with a partner, the next one and the one in the other half.
    check(4, &[(Send, 1), (Recv, 3)], (1, 2));
    check(3, &[(Send, 1), (Send, 2), (Recv, 1), (Recv, 2)], (0, 2));
    check(4, &[(Send, 1), (Recv, 1)], (1, 0));
    check(8, &[(Send, 4), (Recv, 4)], (1, 5));
}

#[test]
fn files_that_are_none() {
    assert!(matches!(chakra::read(&[][..]), Err(ChakraError::Empty)));
    assert!(chakra::read(&b"not a trace at all"[..]).is_err());
    assert!(matches!(
        chakra::read(&[0xff; 20][..]),
        Err(ChakraError::Malformed { .. } | ChakraError::Truncated { .. })
    ));
}

#[test]
fn what_was_exported_is_imported() {
    use CollectiveKind::{AllGather, Send};
    let events = || {
        vec![
            event(5, kernel(1)),
            event(0, Action::RecordEvent { stream: StreamId(1), event: EventId(7), version: 1 }),
            event(0, Action::WaitEvent { stream: StreamId(2), event: EventId(7), version: 1 }),
            event(0, collective(2, AllGather, 0, 0)),
            event(3, Action::SynchronizeStream { stream: StreamId(2) }),
            event(2, kernel(1)),
        ]
    };
    let graph = |rank| Graph { nodes: nodes(rank, events()), ..Graph::default() };
    let groups = BTreeMap::from([("1".to_owned(), vec![0, 1])]);
    let job = chakra::import(&[graph(0), graph(1)], &groups).unwrap();
    assert_eq!((job.ranks.len(), job.templates.len()), (2, 1));
    let template = &job.templates[0];
    let collective = template.events.iter().find_map(|event| match &event.action {
        Action::Collective { collective, .. } => Some(collective),
        _ => None,
    });
    assert_eq!(
        collective.map(|found| (found.kind, found.bytes, found.sequence)),
        Some((AllGather, Bytes(4096), 0))
    );
    let names: Vec<&str> = template
        .events
        .iter()
        .map(|event| match event.action {
            Action::Enqueue { .. } => "kernel",
            Action::Collective { .. } => "collective",
            Action::RecordEvent { .. } => "record",
            Action::WaitEvent { .. } => "wait",
            Action::SynchronizeEvent { .. } => "synchronise",
            _ => "host",
        })
        .collect();
    assert_eq!(names, ["kernel", "record", "wait", "collective", "record", "synchronise", "kernel", "host"]);
    let host: Duration = template.events.iter().map(|event| event.gap).sum();
    assert_eq!(host, Duration::from_micros(10));
    // Messages of one group call stay one.
    let both = || {
        vec![
            event(0, self::collective(1, Send, 1, 4)),
            event(0, self::collective(1, CollectiveKind::Recv, 1, 4)),
        ]
    };
    let job =
        chakra::import(&[Graph { nodes: nodes(0, both()), ..Graph::default() }, graph(1)], &groups).unwrap();
    let groups_of = |event: &HostEvent| match &event.action {
        Action::Collective { collective, .. } => Some(collective.group),
        _ => None,
    };
    let found: Vec<u64> = job.templates[0].events.iter().filter_map(groups_of).collect();
    assert_eq!(found, [1, 1]);
    // A message without its peer, a group without members, a cycle.
    let lonely = nodes(0, vec![event(0, self::collective(1, Send, 1, 0))]);
    let lonely = Graph { nodes: lonely, ..Graph::default() };
    assert!(matches!(
        chakra::import(std::slice::from_ref(&lonely), &BTreeMap::new()),
        Err(ImportError::Group { .. })
    ));
    let alone = BTreeMap::from([("1".to_owned(), vec![0])]);
    assert!(matches!(chakra::import(&[lonely], &alone), Err(ImportError::Peer { peer: 1, .. })));
    let node = |id, on| Node { id, data: vec![on], kind: 4, ..Node::default() };
    let circle = Graph { nodes: vec![node(1, 2), node(2, 1)], ..Graph::default() };
    assert!(matches!(chakra::import(&[circle], &BTreeMap::new()), Err(ImportError::Cycle { .. })));
    let twice = Graph { nodes: vec![node(1, 1), node(1, 1)], ..Graph::default() };
    assert!(matches!(chakra::import(&[twice], &BTreeMap::new()), Err(ImportError::Twice { .. })));
    assert!(matches!(
        chakra::import(&[Graph::default()], &BTreeMap::new()),
        Err(ImportError::Empty { ranks: 1 })
    ));
}

#[test]
fn json_forms() {
    let graph = r#"{"workload_graph": [
        {"Id": 1, "Name": "aten::add", "NodeType": 4, "ctrlDeps": [], "runtime": 30, "is_cpu_op": true},
        {"Id": 2, "Name": "kernel", "NodeType": 4, "data_deps": [1], "runtime": 4, "is_cpu_op": false},
        {"Id": 3, "Name": "ncclKernel", "NodeType": 7, "data_deps": [2], "runtime": 28, "is_cpu_op": false}]}"#;
    let (graph, _) = chakra::read_json(graph).unwrap();
    let job = chakra::import(&[graph], &BTreeMap::new()).unwrap();
    let times: Vec<Duration> = job.templates[0]
        .operations
        .iter()
        .map(|operation| match &operation.descriptor {
            Descriptor::Recorded(recorded) => recorded.time,
            other => panic!("{other:?}"),
        })
        .collect();
    // Communication without a size keeps its time.
    assert_eq!(times, [Duration::from_micros(4), Duration::from_micros(28)]);

    let pytorch = r#"{"schema": "1.1.0-chakra.0.0.4", "nodes": [
        {"id": 3, "name": "aten::linear", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [], "types": []}, "outputs": {"values": [], "shapes": [], "types": []}},
        {"id": 4, "name": "aten::t", "ctrl_deps": 3, "inputs": {"values": [[1, 2, 0, 128, 4, "cuda:0"]], "shapes": [[16, 8]], "types": ["Tensor(float)"]}, "outputs": {"values": [[1, 2, 0, 128, 4, "cuda:0"]], "shapes": [[8, 16]], "types": ["Tensor(float)"]}},
        {"id": 5, "name": "aten::mm", "ctrl_deps": 3, "inputs": {"values": [[1, 2, 0, 32, 2, "cuda:0"], [1, 2, 0, 128, 2, "cuda:0"]], "shapes": [[4, 8], [8, 16]], "types": ["Tensor(c10::Half)", "Tensor(c10::Half)"]}, "outputs": {"values": [[9, 2, 0, 64, 2, "cuda:0"]], "shapes": [[4, 16]], "types": ["Tensor(c10::Half)"]}},
        {"id": 6, "name": "aten::relu", "ctrl_deps": 1, "inputs": {"values": [[9, 2, 0, 64, 2, "cuda:0"]], "shapes": [[4, 16]], "types": ["Tensor(c10::Half)"]}, "outputs": {"values": [[10, 2, 0, 64, 2, "cuda:0"]], "shapes": [[4, 16]], "types": ["Tensor(c10::Half)"]}},
        {"id": 7, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {"values": [[[10, 2, 0, 64, 2, "cuda:0"]], 1, 2, "all_reduce"], "shapes": [[[4, 16]], [], [], []], "types": ["GenericList[Tensor(c10::Half)]", "Int", "Int", "String"]}, "outputs": {"values": [], "shapes": [], "types": []}},
        {"id": 8, "name": "aten::add", "ctrl_deps": 1, "inputs": {"values": [[9, 2, 0, 64, 2, "cpu"]], "shapes": [[4, 16]], "types": ["Tensor(float)"]}, "outputs": {"values": [[10, 2, 0, 64, 2, "cpu"]], "shapes": [[4, 16]], "types": ["Tensor(float)"]}}]}"#;
    let (graph, _) = chakra::read_json(pytorch).unwrap();
    let job = chakra::import(&[graph.clone(), graph], &BTreeMap::new()).unwrap();
    let operations = &job.templates[0].operations;
    let Descriptor::Gemm(gemm) = &operations[0].descriptor else { panic!("{operations:?}") };
    assert_eq!((gemm.m, gemm.n, gemm.k, gemm.batch, gemm.a), (4, 16, 8, 1, DType::F16));
    assert_eq!((operations.len(), operations[1].descriptor.work().bytes()), (2, Bytes(256)));
    assert!(job.templates[0].events.iter().any(|event| matches!(&event.action, Action::Collective { collective, .. } if collective.bytes == Bytes(128))));
    let refused = |text: &str, expect: &str| {
        let error = chakra::read_json(text).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    refused("{\"nodes\": [", "is no JSON");
    refused("{\"traceEvents\": []}", "read as Kineto");
    refused("{\"nodes\": [{\"name\": \"x\"}]}", "node 0 has no `id`");
}
