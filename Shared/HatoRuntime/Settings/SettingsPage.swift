/// Generates a service's SETTINGS.md from its declared settings.
public enum SettingsPage {
    /// The page as Markdown: a row for each setting, in the order of `--help`.
    public static func markdown(title: String, settings: [Setting]) -> String {
        let rows = settings.map { setting in
            "| `\(setting.name)` | \(values(of: setting)) | \(preset(of: setting)) | \(cell(setting.help)) |\n"
        }
        return """
            # \(title)

            Made from the declared settings; do not edit. Each is a flag, an environment variable and a key of the settings
            file; `serve --help`, or `hato-dev --help`, names them. Sizes are set as numbers of bytes: 1 KiB is 1024, 1 MiB
            is 1048576.

            | Setting | Value | Default | Meaning |
            |---|---|---|---|

            """ + rows.joined()
    }

    private static func values(of setting: Setting) -> String {
        switch setting.kind {
        case .text: "text"
        case .name: "name"
        case .integer(let range): "\(number(range.lowerBound, setting)) to \(number(range.upperBound, setting))"
        case .flag: "`true` or `false`"
        case .choice(let choices): choices.map { "`\($0)`" }.joined(separator: " or ")
        case .file: "path"
        case .address: "`HOST:PORT`"
        }
    }

    private static func preset(of setting: Setting) -> String {
        if setting.isRequired { return "(required)" }
        if let words = setting.defaultInWords { return cell(words) }
        guard setting.memory == nil else {
            let example = setting.value(in: MemoryPlan(bytes: AvailableMemory.defaultBytesMax)) ?? 0
            return "\(cell(setting.defaultText ?? "")) (\(number(example, setting)) at 1.5 GiB)"
        }
        guard let value = setting.defaultValue else { return "" }
        guard case .integer = setting.kind, let integer = Int(value) else { return "`\(value)`" }
        return number(integer, setting)
    }

    /// Sizes of whole KiB, MiB, GiB or TiB are written as such.
    private static func number(_ value: Int, _ setting: Setting) -> String {
        guard setting.name.contains("bytes") else { return String(value) }
        for (name, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)]
        where value > 0 && value % (1 << shift) == 0 {
            return "\(value >> shift) \(name)"
        }
        return String(value)
    }

    private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
