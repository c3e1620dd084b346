extension ServeSettings {
    /// Describes the problem when the memory is too small for the service to work; nil when it is enough.
    ///
    /// The longest line and the largest response must fit together into the share of requests.
    static func memoryProblem(_ settings: Settings) -> String? {
        guard settings.text(memory.name) != nil, settings.followsFromMemory(processBytesInFlight) else { return nil }
        let wanted = settings.integer("line-bytes-max") + settings.integer("response-bytes-max")
        guard settings.integer(processBytesInFlight) < wanted else { return nil }
        return tooLittleMemory(settings, wanted: wanted, services: 1)
    }

    /// - Parameter wanted: bytes needed for requests.
    static func tooLittleMemory(_ settings: Settings, wanted: Int, services: Int) -> String {
        let least = MemoryPlan.least(with: wanted, of: .requests)
        let each = services == 1 ? "" : " of each of its \(services) services"
        return "setting \(memory.name): \(settings[memory.name]) bytes are too few: requests get "
            + "\(settings[processBytesInFlight]) of them, and the longest line and the largest response\(each) take "
            + "\(wanted); give \(least) or more, or make line-bytes-max and response-bytes-max smaller"
    }
}
