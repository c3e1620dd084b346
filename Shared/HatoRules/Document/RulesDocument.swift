/// The syntax tree of a rules text: JSON with comments, each part with its offset.
struct RulesDocument {
    struct Value {
        var kind: Kind
        /// The offset of its first scalar.
        var offset: Int
    }

    indirect enum Kind {
        case object([Member])
        case array([Value])
        case string(LocatedText)
        case number(Double)
        case bool(Bool)
        case null
    }

    struct Member {
        var name: String
        /// The offset of the name's opening quote.
        var offset: Int
        var value: Value
    }

    /// The text of a string with escapes resolved, and for each scalar its offset in the document: problems of an
    /// expression are reported at their position in the document.
    struct LocatedText: Sendable {
        var scalars: [Unicode.Scalar]
        var offsets: [Int]
        /// The offset of the closing quote.
        var end: Int

        var text: String {
            var text = String.UnicodeScalarView()
            text.append(contentsOf: scalars)
            return String(text)
        }

        init(scalars: [Unicode.Scalar] = [], offsets: [Int] = [], end: Int = 0) {
            self.scalars = scalars
            self.offsets = offsets
            self.end = end
        }

        /// `true` or `false`, written without quotation marks.
        init(constant: Bool, at offset: Int) {
            scalars = Array((constant ? "true" : "false").unicodeScalars)
            offsets = scalars.indices.map { offset + $0 }
            end = offset + scalars.count
        }

        /// The part whose scalars are in `span` of the document.
        func excerpt(_ span: RulesSpan) -> String {
            var text = String.UnicodeScalarView()
            for (scalar, offset) in zip(scalars, offsets) where offset >= span.start && offset < span.end {
                text.append(scalar)
            }
            return String(text)
        }

        func offset(_ index: Int) -> Int { index < offsets.count ? offsets[index] : end }
    }
}
