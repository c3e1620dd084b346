import Testing

/// No type is too long to read, counted over all its files, and its state is changed in one file.
@Suite struct TypeSizes {
    private static let linesMax = 400

    /// Types beyond that, by target and name, with their lines of code. Nothing is added here, and numbers only fall.
    private static let long: [String: Int] = [:]

    /// How many stored properties of a type its extensions in other files change. No entry is added, and numbers only
    /// fall.
    private static let shared = [
        "HatoModel.JSONScanner": 1, "HatoModel.TreeQuery": 3,
        "HatoNotifier.FeedChange": 9,
        "HatoStorage.MemoryHistory": 2,
    ]

    /// How much a table may exceed the measured numbers.
    private static let slack = 20

    /// Measured once for all tests.
    private static let targets = Result {
        let repository = Repository()
        var files: [String: [SourceFile]] = [:]
        for path in repository.sources {
            let folders = path.split(separator: "/").map(String.init)
            let target = folders[0] == "Shared" ? folders[1] : folders[2]
            files[target, default: []].append(SourceFile(path: path, text: try repository.text(path)))
        }
        return files.mapValues { TypeMeasure($0) }
    }

    @Test func noTypeIsTooLongWithAllItsExtensions() throws {
        var found: [String: Int] = [:]
        for (target, measure) in try Self.targets.get() {
            for (name, type) in measure.types where !type.isNamespace && type.codeLines > Self.linesMax {
                found["\(target).\(name)"] = type.codeLines
            }
        }
        compare(found, with: Self.long, slack: Self.slack, "lines of code")
    }

    @Test func storedPropertiesAreChangedInTheFileThatDeclaresThem() throws {
        var found: [String: Int] = [:]
        for (target, measure) in try Self.targets.get() {
            for name in measure.types.keys {
                let count = measure.sharedProperties(of: name).count
                if count > 0 { found["\(target).\(name)"] = count }
            }
        }
        compare(found, with: Self.shared, slack: 0, "stored properties that other files change")
    }

    private func compare(_ found: [String: Int], with table: [String: Int], slack: Int, _ what: String) {
        for (name, count) in found.sorted(by: { $0.key < $1.key }) {
            let allowed = table[name, default: 0]
            #expect(count <= allowed, "\(name) has \(count) \(what)")
            #expect(allowed - count <= slack, "\(name) has \(count) \(what) only, and \(allowed) in the table")
        }
        for name in table.keys.sorted() where found[name] == nil {
            Issue.record("\(name) has to be removed from the table: \(what)")
        }
    }

    @Test func theMeasureMeasures() throws {
        let one = SourceFile(
            path: "One.swift",
            text: """
                final class A {
                    var changed = 0
                    var untouched = 0
                    private(set) var own = 0
                    var computed: Int { 1 }
                    struct Inner {
                        var count = 0
                    }
                }
                public enum Names {}
                """)
        let other = SourceFile(
            path: "Other.swift",
            text: """
                extension A {
                    // changed = 1
                    func change() {
                        changed += 1
                        let untouched = computed
                    }
                }
                extension Names {
                    struct Name {}
                }
                enum State {
                    case one
                }
                """)
        let measure = TypeMeasure([one, other])
        #expect(measure.types["A"]?.codeLines == 15)
        #expect(measure.types["A.Inner"]?.codeLines == 3)
        #expect(measure.sharedProperties(of: "A") == ["changed"])
        #expect(measure.types["Names"]?.isNamespace == true)
        #expect(measure.types["Names.Name"]?.codeLines == 1)
        #expect(measure.types["State"]?.isNamespace == false)
    }
}
