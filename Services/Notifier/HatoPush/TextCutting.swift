/// Cuts texts where people see no cut character: a flag, a family or an accented letter stays whole or goes.
enum TextCutting {
    /// The text when it fits; otherwise its longest beginning that fits with "…" after it, cut between two grapheme
    /// clusters. Nil when not even "…" fits.
    ///
    /// - Parameter fits: true for every text that is shorter than one that fits.
    static func cut(_ text: String, until fits: (String) -> Bool) -> String? {
        if fits(text) { return text }
        guard fits("…") else { return nil }
        let ends = Array(text.indices)
        // Invariant: the text cut at `low` fits, and the one cut at `high` does not, or is the whole.
        var (low, high) = (0, ends.count)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if fits(text[..<ends[middle]] + "…") { low = middle } else { high = middle }
        }
        guard low > 0 else { return "…" }
        return text[..<ends[low]] + "…"
    }
}
