//! Max-min fair rates by progressive filling.

/// Something that sends over links.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct User {
    /// The most that it can use.
    pub(crate) limit: f64,
    /// Links by number, each once, and what it sends over each for one unit of rate: whole numbers, whose sums are exact.
    pub(crate) links: Vec<(usize, f64)>,
}

/// The max-min fair rate of each user: all rates rise together until a link or a user's own limit is full; those users
/// stay, the others rise on.
pub(crate) fn rates(capacities: &[f64], users: &[User]) -> Vec<f64> {
    let mut rates = vec![0.0; users.len()];
    let mut open: Vec<usize> = (0..users.len()).collect();
    let mut free = capacities.to_vec();
    let mut weight = vec![0.0; capacities.len()];
    let mut level = 0.0;
    for user in users {
        user.links.iter().for_each(|&(link, part)| weight[link] += part);
    }
    while !open.is_empty() {
        let by_link = |link: usize| free[link].max(0.0) / weight[link];
        let least_link =
            (0..free.len()).filter(|&link| weight[link] > 0.0).map(by_link).fold(f64::INFINITY, f64::min);
        let own = |&user: &usize| (users[user].limit - level).max(0.0);
        let rise = open.iter().map(own).fold(least_link, f64::min);
        if !rise.is_finite() {
            // No link and no limit: as fast as anything can be told.
            open.iter().for_each(|&user| rates[user] = f64::MAX);
            return rates;
        }
        level += rise;
        for (free, weight) in free.iter_mut().zip(&weight) {
            *free -= rise * weight;
        }
        // A link is full when what is left is rounding.
        let full: Vec<bool> = (0..free.len())
            .map(|link| weight[link] > 0.0 && free[link] <= capacities[link] * 1e-12)
            .collect();
        let mut closed = false;
        open.retain(|&place| {
            let user = &users[place];
            let stays = user.limit <= level * (1.0 + 1e-12) || user.links.iter().any(|&(link, _)| full[link]);
            if stays {
                rates[place] = level.min(user.limit);
                closed = true;
                user.links.iter().for_each(|&(link, part)| weight[link] -= part);
            }
            !stays
        });
        debug_assert!(closed, "every rise fills a link or a limit");
        if !closed {
            open.iter().for_each(|&user| rates[user] = level);
            return rates;
        }
    }
    rates
}
