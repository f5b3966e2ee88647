//! How many rings fit through devices that links join in pairs.
//!
//! NCCL looks for rings that visit every device once and share no link. A cycle without direction carries two rings,
//! one each way. Nodes have at most a few tens of devices and few links each, so an exhaustive search is quick.

/// Rings (one direction each) through the devices `local` that can run at once, each at the rate of one link; 0 when
/// there is none.
pub(super) fn count(links: &[Vec<u32>], local: &[u32]) -> u32 {
    let at = |a: u32, b: u32| {
        let row = links.get(a as usize);
        row.and_then(|row| row.get(b as usize)).copied().unwrap_or(0)
    };
    let mut matrix: Vec<Vec<u32>> =
        local.iter().map(|&a| local.iter().map(|&b| if a == b { 0 } else { at(a, b) }).collect()).collect();
    match local.len() {
        0 => 0,
        1 => links.get(local[0] as usize).map_or(0, |row| row.iter().sum()),
        // To and fro between two: each link carries one ring.
        2 => matrix[0][1],
        _ => {
            let cycles = pack(&mut matrix, LIMIT);
            if cycles > 0 { 2 * cycles } else { through_neighbour(&matrix) }
        }
    }
}

/// Cycles beyond this number are not looked for: no device has so many links.
const LIMIT: u32 = 9;

/// The most cycles through all devices that share no link.
fn pack(links: &mut [Vec<u32>], limit: u32) -> u32 {
    let size = links.len();
    // The device with the fewest links bounds the number.
    let degree = links.iter().map(|row| row.iter().sum::<u32>()).min().unwrap_or(0);
    let limit = limit.min(degree / 2);
    if limit == 0 {
        return 0;
    }
    // Meshes in which every pair is joined alike need no search: their cycles can be spread evenly.
    let first = links[0][1];
    let uniform = (0..size).all(|a| (0..size).all(|b| a == b || links[a][b] == first));
    if uniform {
        return (first * (size as u32 - 1) / 2).max(1);
    }
    let mut best = 0;
    let mut path = vec![0];
    extend(links, &mut path, limit, &mut best);
    best
}

/// Extends `path` in every way; `best` is the largest number of cycles found.
fn extend(links: &mut [Vec<u32>], path: &mut Vec<usize>, limit: u32, best: &mut u32) {
    if *best >= limit {
        return;
    }
    let size = links.len();
    let last = path[path.len() - 1];
    if path.len() == size {
        // One of the two directions is enough.
        if links[last][0] == 0 || path[1] > last {
            return;
        }
        let edges: Vec<(usize, usize)> = (0..size).map(|i| (path[i], path[(i + 1) % size])).collect();
        for &(a, b) in &edges {
            links[a][b] -= 1;
            links[b][a] -= 1;
        }
        *best = (*best).max(1 + pack(links, limit - 1));
        for &(a, b) in &edges {
            links[a][b] += 1;
            links[b][a] += 1;
        }
        return;
    }
    for next in 0..size {
        if links[last][next] > 0 && !path.contains(&next) {
            path.push(next);
            extend(links, path, limit, best);
            path.pop();
        }
    }
}

/// Rings when one device has a single neighbour: they reach it and come back over the same links (NCCL's "NVB" paths,
/// NVLink through a neighbour).
fn through_neighbour(links: &[Vec<u32>]) -> u32 {
    let size = links.len();
    let neighbours = |a: usize| (0..size).filter(|&b| links[a][b] > 0).count();
    let Some(leaf) = (0..size).find(|&a| neighbours(a) == 1) else { return 0 };
    let spoke: u32 = links[leaf].iter().sum();
    let mut rest: Vec<Vec<u32>> = (0..size)
        .filter(|&a| a != leaf)
        .map(|a| (0..size).filter(|&b| b != leaf).map(|b| links[a][b]).collect())
        .collect();
    (2 * pack(&mut rest, LIMIT)).min(spoke)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cube mesh of a DGX-1 with V100, as its `nvidia-smi topo -m` prints it.
    const CUBE_MESH: [[u32; 8]; 8] = [
        [0, 1, 1, 2, 2, 0, 0, 0],
        [1, 0, 2, 1, 0, 2, 0, 0],
        [1, 2, 0, 2, 0, 0, 1, 0],
        [2, 1, 2, 0, 0, 0, 0, 1],
        [2, 0, 0, 0, 0, 1, 1, 2],
        [0, 2, 0, 0, 1, 0, 2, 1],
        [0, 0, 1, 0, 1, 2, 0, 2],
        [0, 0, 0, 1, 2, 1, 2, 0],
    ];

    #[test]
    fn rings_of_the_cube_mesh_as_measured() {
        // Bus bandwidth of public all-reduce measurements on such a node, 2 to 8 ranks: 22.5, 45, 85, 37, 46, 87,
        // 134 GB/s; one link carries about 22.5.
        let links: Vec<Vec<u32>> = CUBE_MESH.iter().map(|row| row.to_vec()).collect();
        let check = |ranks: u32, rings| {
            let local: Vec<u32> = (0..ranks).collect();
            assert_eq!(count(&links, &local), rings, "{ranks} ranks");
        };
        check(2, 1);
        check(3, 2);
        check(4, 4);
        check(5, 2);
        check(6, 2);
        check(7, 4);
        check(8, 6);
    }

    #[test]
    fn full_meshes_and_islands() {
        let full = |size: usize, each: u32| -> Vec<Vec<u32>> {
            (0..size).map(|a| (0..size).map(|b| if a == b { 0 } else { each }).collect()).collect()
        };
        assert_eq!(count(&full(4, 1), &[0, 1, 2, 3]), 2);
        assert_eq!(count(&full(4, 2), &[0, 1, 2, 3]), 6);
        assert_eq!(count(&full(4, 4), &[0, 1]), 4);
        let pairs = vec![vec![0, 4, 0, 0], vec![4, 0, 0, 0], vec![0, 0, 0, 4], vec![0, 0, 4, 0]];
        assert_eq!(count(&pairs, &[0, 1]), 4);
        assert_eq!(count(&pairs, &[1, 2]), 0);
        assert_eq!(count(&pairs, &[0, 1, 2, 3]), 0);
        assert_eq!(count(&[], &[0, 1]), 0);
    }
}
