import Testing

/// Names and words: names are not empty words, and unfinished code is not left behind.
@Suite struct Words {
    private let repository = Repository()
    private let emptyNames = [
        "Manager", "Helper", "Util", "Utils", "Common", "Base", "Core", "Engine", "Processor", "Info",
    ]

    @Test func noTypeHasANameThatSaysNothing() throws {
        for path in repository.allSwift {
            let file = SourceFile(path: path, text: try repository.text(path))
            for line in file.lines {
                guard
                    ["struct ", "class ", "enum ", "actor ", "protocol ", "typealias "].contains(where: line.contains)
                else {
                    continue
                }
                guard let match = line.firstMatch(of: #/\b(struct|class|enum|actor|protocol|typealias)\s+(\w+)/#) else {
                    continue
                }
                for word in words(of: String(match.2)) {
                    #expect(!emptyNames.contains(word), "\(path): \(match.2)")
                }
            }
        }
    }

    @Test func noFileHasANameThatSaysNothing() {
        for path in repository.allSwift {
            let name = path.split(separator: "/").last.map(String.init) ?? ""
            for word in words(of: String(name.dropLast(6))) {
                #expect(!emptyNames.contains(word), "\(path)")
            }
        }
    }

    @Test func nothingUnfinishedAndNothingThatMayCrash() throws {
        // Split so that this file does not contain them.
        let words = ["TO" + "DO", "FIX" + "ME", "try" + "!", "fatal" + "Error("]
        for path in repository.sources {
            let text = try repository.text(path)
            for word in words where text.contains(word) { Issue.record("\(path) has \(word)") }
        }
    }

    @Test func theProjectNamesNothingOutsideOfIt() throws {
        let words = ["/wo" + "rk/", "shared/" + "spec", "shared/" + "design", "shared/" + "notes", "shared/" + "data"]
        let texts =
            repository.allSwift + repository.files(ending: ".md") + repository.files(ending: ".yaml") + [
                "Makefile", "Dockerfile",
            ]
        for path in texts {
            let text = try repository.text(path)
            for word in words where text.contains(word) { Issue.record("\(path) mentions \(word)") }
        }
    }

    /// Where a test may pause in another way than with `eventually`, and how often: these pauses wait for no event.
    private static let pauses = [
        // Time limits, after which a program that hangs is killed.
        "Tests/Integration/Executable.swift": 1, "Tests/Fault/Stack/Program.swift": 1,
        // The delay of a client before it connects again.
        "Tests/Fault/Stack/FirebaseConnection.swift": 1,
        // The moment at which a program kills itself.
        "Tests/Unit/HatoStorageTests/RocksDB/CrashTests.swift": 1,
        // In a closure that may not suspend: time in which a forbidden event would happen.
        "Tests/Unit/HatoStorageTests/RocksDB/SyncTests.swift": 2,
        // The pace of a peer that reads slowly.
        "Tests/Integration/UnreadResponses.swift": 1,
    ]

    /// A sleep is too short on a loaded machine and too long on every other: tests wait for the event itself, or poll
    /// for it with `eventually`, which has a deadline.
    @Test func testsNeverSleepToWait() throws {
        let pause = #/\b(Task|Thread|[cC]lock(\(\))?)\.sleep\(|\bu?sleep\(\d|\busleep\(/#
        for path in repository.files(ending: ".swift", under: "Tests") {
            let lines = SourceFile(path: path, text: try repository.text(path)).lines
            let count = lines.count { $0.contains(pause) }
            #expect(count == Self.pauses[path, default: 0], "\(path) sleeps")
        }
    }

    /// The words of a camel-case name.
    private func words(of name: String) -> [String] {
        var words: [String] = []
        for character in name {
            if character.isUppercase || words.isEmpty { words.append("") }
            words[words.count - 1].append(character)
        }
        return words
    }
}
