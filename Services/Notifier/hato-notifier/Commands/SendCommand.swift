import ArgumentParser
import HatoCommand
import HatoModel

struct SendCommand: RequestCommand {
    typealias Target = NotifierTarget
    static let configuration = CommandConfiguration(
        commandName: "send", abstract: Notifier.Send.summary,
        discussion: "Example: hato-notifier send --to u1 --to u2 --title お知らせ --body 'メンテナンスは明日です'")

    @OptionGroup var options: ClientOptions
    @Option(help: "A user to notify; may be given several times.") var to: [String] = []
    @Option(help: "A device to notify; may be given several times.") var device: [String] = []
    @Option(help: "Notify the users of a topic.") var topic: String?
    @Option(help: "The type that the data fit; gives the text unless there is a title or body.") var type: String?
    @Option(help: "The title.") var title: String?
    @Option(help: "The body.") var body: String?
    @Option(help: ArgumentHelp("For the receiving app; may be given several times.", valueName: "name=value"))
    var data: [String] = []
    @Option(help: ArgumentHelp("How long it is worth delivering.", valueName: "seconds")) var ttl: Int?
    @Option(help: "Replaces an unsent notification with the same key.") var collapseKey: String?
    @Option(help: "Sends once, however often this is called within 24 hours.") var idempotencyKey: String?
    @Option(help: "ids: no provider gets the text; the app fetches it.", transform: choice)
    var content: Notifier.ContentChoice?
    @Flag(help: "Say how many devices there are; send nothing.") var dryRun = false

    func request() throws -> Notifier.Send {
        var request = Notifier.Send(
            to: try target(), notification: .init(title: title, body: body), idempotencyKey: idempotencyKey)
        request.type = type
        if type != nil, title == nil, body == nil { request.notification = nil }
        for pair in data {
            guard let sign = pair.firstIndex(of: "=") else { throw ValidationError("--data is name=value.") }
            request.data = request.data ?? [:]
            request.data?[String(pair[..<sign])] = String(pair[pair.index(after: sign)...])
        }
        if ttl != nil || collapseKey != nil {
            request.options = .init(ttlSeconds: ttl, collapseKey: collapseKey)
        }
        request.dryRun = dryRun ? true : nil
        request.content = content
        return request
    }

    private func target() throws -> Notifier.SendTarget {
        switch (to.isEmpty, device.isEmpty, topic) {
        case (false, true, nil): .init(uids: to)
        case (true, false, nil): .init(devices: device)
        case (true, true, let topic?): .init(topic: topic)
        default: throw ValidationError("Give --to, --device or --topic.")
        }
    }
}
