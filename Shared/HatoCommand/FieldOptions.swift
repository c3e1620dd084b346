public import ArgumentParser
public import HatoModel

/// Which fields of an object a command takes as options.
public protocol OptionFields {
    associatedtype Object: FieldObject

    /// The fields that the command gets in another way.
    static var omitted: Set<String> { get }
    /// The names of options that are not those of their fields, without dashes: `["ttlSeconds": "ttl"]`.
    static var names: [String: String] { get }
}

extension OptionFields {
    public static var omitted: Set<String> { [] }
    public static var names: [String: String] { [:] }
}

/// All fields of an object, under their own names.
public enum AllFields<Object: FieldObject>: OptionFields {}

/// An option for each field of an object, made from its table of fields: the name in words (`collapseKey` is
/// `--collapse-key`), the meaning as the help.
///
/// A text or a number is given as it is, and true as a flag. Lists of texts, and texts by name (`name=value`), have
/// options that may be repeated. Any other value is a JSON file; `-` is stdin. No option is required: the service
/// refuses a request without a required field.
///
/// ArgumentParser finds the options of a type by its mirror, and decodes their values by name.
public struct FieldOptions<Choice: OptionFields>: ParsableArguments, CustomReflectable {
    private var texts: [String: [String]] = [:]

    public init() {}

    /// Takes the values that ArgumentParser has found. Throws the errors of the decoder.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: FieldOption.Key.self)
        for option in Self.options { texts[option.field] = try option.texts(values) }
    }

    public var customMirror: Mirror {
        Mirror(self, children: Self.options.map { (label: Optional($0.field), value: $0.definition) })
    }

    private static var options: [FieldOption] {
        let properties = Choice.Object.schema["properties"]?.object?.members ?? []
        return properties.filter { !Choice.omitted.contains($0.name) }.map {
            FieldOption($0.name, as: Choice.names[$0.name], schema: $0.value)
        }
    }

    /// Whether no option is given.
    public var isEmpty: Bool { texts.isEmpty }

    /// The values that are given, by field.
    ///
    /// - Throws: `CommandFailure` that names the option, and the file if there is one.
    public func members() throws(CommandFailure) -> JSONObject {
        let given = Self.options.compactMap { option in texts[option.field].map { (option: option, texts: $0) } }
        // Before one of them is read.
        let onStdin = given.filter { $0.option.readsStdin($0.texts) }.map(\.option.words)
        if onStdin.count > 1 { throw CommandInput.twoOnStdin(onStdin[0], onStdin[1]) }
        var members = JSONObject()
        for (option, texts) in given { members[option.field] = try option.value(of: texts) }
        return members
    }

    /// The request that these options and `others` are.
    ///
    /// - Parameters:
    ///   - others: members that the command has got in another way.
    ///   - sources: the option, with its file, that a member comes from, by its dotted path; for errors.
    /// - Throws: `CommandFailure` that names the option, and the file if there is one.
    public func request(
        with others: JSONObject = [:], from sources: [String: String] = [:]
    ) throws(CommandFailure) -> Choice.Object where Choice.Object: RPCRequest {
        var members = try members()
        for member in others.members { members[member.name] = member.value }
        do { return try Choice.Object.decode(members) } catch {
            let sources = self.sources().merging(sources) { $1 }
            throw CommandFailure.wrongRequest(Choice.Object.self, error) { parameter in
                let known = sources.filter { parameter == $0.key || parameter.hasPrefix($0.key + ".") }
                return known.max { $0.key.utf8.count < $1.key.utf8.count }?.value
            }
        }
    }

    /// The options that are given, each with its file, by the path of their member in a request.
    ///
    /// - Parameter member: the member of the request that these options are; nil: they are members of it.
    public func sources(of member: String? = nil) -> [String: String] {
        var sources: [String: String] = [:]
        for option in Self.options {
            guard let texts = texts[option.field] else { continue }
            sources[(member.map { "\($0)." } ?? "") + option.field] = option.source(of: texts)
        }
        return sources
    }
}

/// A field as an option.
struct FieldOption {
    /// The name of a field.
    struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private enum Kind {
        case text, number, flag, file
        case choice([String])
        case texts([String])
        case textsByName
    }

    let field: String
    /// Without dashes.
    private let name: String
    private let meaning: String
    private let kind: Kind

    /// - Parameter schema: the schema of the values, with the meaning of the field as its description.
    init(_ field: String, as name: String?, schema: JSONValue) {
        self.field = field
        self.name = name ?? Self.words(field)
        meaning = schema["description"]?.string ?? ""
        kind = Self.kind(of: schema)
    }

    /// `collapseKey`: `collapse-key`.
    private static func words(_ field: String) -> String {
        field.reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : String($1) }
    }

    private static func kind(of schema: JSONValue) -> Kind {
        switch schema["type"]?.string {
        case "string": choices(schema).map(Kind.choice) ?? .text
        case "integer", "number": .number
        case "boolean": .flag
        case "array" where schema["items"]?["type"] == "string":
            .texts(schema["items"].flatMap(choices) ?? [])
        case "object" where schema["additionalProperties"]?["type"] == "string": .textsByName
        default: .file
        }
    }

    private static func choices(_ schema: JSONValue) -> [String]? {
        schema["enum"]?.array.map { $0.compactMap(\.string) }
    }

    /// What ArgumentParser parses.
    var definition: Any {
        switch kind {
        case .flag: Flag(wrappedValue: false, name: .customLong(name), help: help(nil))
        case .texts(let choices): list(choices.isEmpty ? nil : choices.joined(separator: "|"))
        case .textsByName: list("name=value")
        case .text: single(nil)
        case .number: single("number")
        case .file: single("file")
        case .choice(let choices): single(choices.joined(separator: "|"))
        }
    }

    private func single(_ valueName: String?) -> Option<String?> {
        Option(wrappedValue: nil, name: .customLong(name), help: help(valueName))
    }

    private func list(_ valueName: String?) -> Option<[String]> {
        Option(wrappedValue: [], name: .customLong(name), help: help(valueName))
    }

    private func help(_ valueName: String?) -> ArgumentHelp {
        switch kind {
        case .file: ArgumentHelp("\(meaning). A JSON file; - is stdin.", valueName: valueName)
        case .texts, .textsByName: ArgumentHelp("\(meaning). May be repeated.", valueName: valueName)
        default: ArgumentHelp("\(meaning).", valueName: valueName)
        }
    }

    /// The texts that are given; nil: none.
    func texts(_ values: KeyedDecodingContainer<Key>) throws -> [String]? {
        let key = Key(stringValue: field)
        switch kind {
        case .flag: return try values.decode(Flag<Bool>.self, forKey: key).wrappedValue ? [""] : nil
        case .texts, .textsByName:
            let texts = try values.decode(Option<[String]>.self, forKey: key).wrappedValue
            return texts.isEmpty ? nil : texts
        default: return try values.decode(Option<String?>.self, forKey: key).wrappedValue.map { [$0] }
        }
    }

    /// As it stands in a line.
    var words: String { "--\(name)" }

    func readsStdin(_ texts: [String]) -> Bool { if case .file = kind { texts.last == "-" } else { false } }

    /// The option, with its file, for errors.
    func source(of texts: [String]) -> String {
        if case .file = kind { "--\(name) \(texts.last ?? "")" } else { "--\(name)" }
    }

    func value(of texts: [String]) throws(CommandFailure) -> JSONValue {
        let text = texts.last ?? ""
        switch kind {
        case .flag: return true
        case .text: return .string(text)
        case .number:
            guard let number = Double(text), number.isFinite else {
                throw CommandFailure(.usage, "--\(name) \(text): give a number, e.g. 1")
            }
            return .number(number)
        case .choice(let choices): return .string(try chosen(text, choices))
        case .texts(let choices):
            var values: [JSONValue] = []
            for text in texts { values.append(.string(choices.isEmpty ? text : try chosen(text, choices))) }
            return .array(values)
        case .textsByName: return .object(try valuesByName(texts))
        case .file:
            if text == "-" { try CommandInput.requireUnread(by: words) }
            do { return try CommandInput.json(of: text, as: words) } catch {
                throw CommandFailure(error.code, "--\(name): \(error.message)")
            }
        }
    }

    private func chosen(_ text: String, _ choices: [String]) throws(CommandFailure) -> String {
        guard choices.contains(text) else {
            throw CommandFailure(.usage, "--\(name) \(text): give one of \(choices.joined(separator: ", "))")
        }
        return text
    }

    private func valuesByName(_ texts: [String]) throws(CommandFailure) -> JSONObject {
        var values = JSONObject()
        for text in texts {
            guard let sign = text.firstIndex(of: "=") else {
                throw CommandFailure(.usage, "--\(name) \(text): give name=value, e.g. chat=c1")
            }
            let key = String(text[..<sign])
            guard values[key] == nil else { throw CommandFailure(.usage, "--\(name) \(key): it is given twice") }
            values[key] = .string(String(text[text.index(after: sign)...]))
        }
        return values
    }
}
