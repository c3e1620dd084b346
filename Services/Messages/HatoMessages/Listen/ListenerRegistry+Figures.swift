import HatoStorage

extension ListenerRegistry {
    /// Shows what is not counted as it happens. Looks at every topic and follower: for scrapers.
    func showFigures() {
        let behind = topics.values.reduce(0) { count, topic in
            count + topic.others.values.count { !$0.gathers }
        }
        parts.metrics.listening(behind: behind, windows: topics.values.count { $0.key.query != nil })
        let newest = current?.version ?? 0
        let late = followers.values.filter { if case .live = $0.state { false } else { true } }
        let lag = followers.values.map { newest > $0.position ? newest - $0.position : 0 }.max()
        parts.metrics.following(behind: late.count, lag: lag ?? 0)
    }
}
