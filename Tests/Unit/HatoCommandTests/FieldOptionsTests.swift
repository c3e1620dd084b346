import ArgumentParser
import Foundation
import HatoModel
import Testing

@testable import HatoCommand

private enum Colour: String, FieldChoice { case red, green }

private struct Door: RPCRequest {
    typealias Result = Empty
    static let method = "shop.door"
    static let summary = "Orders a door"
    static let access = Access.anyone
    static let effect = Effect.write

    var name: String
    var widthMillimetres: Int?
    var colour: Colour?
    var isOpen: Bool?
    var keys: [String]?
    var panels: [Colour]?
    var labels: [String: String]?
    var frame: JSONObject?
    var id: String?

    static let fields = Fields<Self>(
        blank: Self(name: ""),
        .required("name", \.name, "What it is called"),
        .optional("widthMillimetres", \.widthMillimetres, "How wide it is", example: 900),
        .optional("colour", \.colour, "Its colour"),
        .optional("isOpen", \.isOpen, "True: it is open"),
        .optional("keys", \.keys, "Its keys"),
        .optional("panels", \.panels, "The colours of its panels"),
        .optional("labels", \.labels, "Its labels"),
        .optional("frame", \.frame, "Its frame"),
        .optional("id", \.id, "Its id"))

    static let example = RPCExample(Door(name: "front"), Empty())
}

private enum DoorFields: OptionFields {
    typealias Object = Door
    static let omitted: Set<String> = ["id"]
    static let names = ["widthMillimetres": "width"]
}

/// Options that are made from the table of fields.
@Suite struct FieldOptionsTests {
    private typealias Options = FieldOptions<DoorFields>

    private func file(_ text: String) throws -> String {
        let url = FileManager.default.temporaryDirectory.appending(path: "hato-\(UUID().uuidString).json")
        try Data(text.utf8).write(to: url)
        return url.path
    }

    private func failure(_ arguments: [String]) throws -> String {
        let options = try Options.parse(arguments)
        do {
            _ = try options.request()
            return ""
        } catch {
            #expect(error.code == .usage || error.code == .inputOutput)
            return error.message
        }
    }

    @Test func everyKindOfFieldHasAnOption() throws {
        let frame = try file(#"{"wood":"oak"}"#)
        let options = try Options.parse(
            [
                "--name", "戸", "--width", "900", "--colour", "red", "--is-open", "--keys", "a", "--keys", "b",
                "--panels", "green", "--labels", "a=b=c", "--labels", "d=", "--frame", frame,
            ])
        let expected: JSONObject = [
            "name": "戸", "widthMillimetres": 900, "colour": "red", "isOpen": true, "keys": ["a", "b"],
            "panels": ["green"], "labels": ["a": "b=c", "d": ""], "frame": ["wood": "oak"],
        ]
        #expect(try options.members() == expected)
        #expect(try options.request().members == expected)
        #expect(try options.request(with: ["id": "d1"]).id == "d1")
        #expect(!options.isEmpty)
    }

    @Test func whatIsNotGivenIsAbsent() throws {
        let options = try Options.parse([])
        #expect(options.isEmpty)
        #expect(try options.members().isEmpty)
        #expect(options.sources().isEmpty)
    }

    @Test func wrongValuesNameTheirOption() throws {
        let wrong: [([String], String)] = [
            (["--name", "a", "--width", "wide"], "--width wide: give a number, e.g. 1"),
            (["--name", "a", "--width", "0.5"], "--width: 'widthMillimetres' must be an integer"),
            (["--name", "a", "--colour", "blue"], "--colour blue: give one of red, green"),
            (["--name", "a", "--panels", "red", "--panels", "x"], "--panels x: give one of red, green"),
            (["--name", "a", "--labels", "a"], "--labels a: give name=value"),
            (["--name", "a", "--labels", "a=1", "--labels", "a=2"], "--labels a: it is given twice"),
            (["--name", "a", "--frame", "/none"], "--frame: cannot read '/none': no such file"),
            (["--width", "900"], "'name' is missing, e.g. \"front\""),
        ]
        for (arguments, expected) in wrong {
            let message = try failure(arguments)
            #expect(message.hasPrefix(expected), "\(message)")
        }
    }

    @Test func wrongFilesAreNamedWithTheirField() throws {
        let (list, text) = (try file("[]"), try file("oak"))
        #expect(
            try failure(["--name", "a", "--frame", list])
                == "--frame \(list): 'frame' must be an object, not an array")
        #expect(try failure(["--name", "a", "--frame", text]).hasPrefix("--frame: '\(text)' is not valid JSON"))
    }

    @Test func omittedFieldsHaveNoOption() {
        #expect(throws: (any Error).self) { try Options.parse(["--id", "d1"]) }
        #expect(throws: (any Error).self) { try Options.parse(["--width-millimetres", "900"]) }
    }

    @Test func helpIsTheMeaningOfEachField() {
        let help = Options.helpMessage(columns: 200)
        for line in [
            "--name <name>", "--width <number>", "How wide it is.", "--colour <red|green>", "--is-open",
            "--keys <keys>", "Its keys. May be repeated.", "--labels <name=value>", "--frame <file>",
            "Its frame. A JSON file; - is stdin.",
        ] {
            #expect(help.contains(line), "\(help)")
        }
    }

    @Test func sourcesAreOptionsByPath() throws {
        let options = try Options.parse(["--width", "1", "--frame", "frame.json"])
        #expect(
            options.sources(of: "door") == ["door.widthMillimetres": "--width", "door.frame": "--frame frame.json"])
    }
}
