/// The most common passwords of published leaks that are long enough to matter, in lower case.
///
/// Repetitions and sequences are not listed: `PasswordPolicy` detects them by their form.
enum PasswordBlocklist {
    static let all: Set<String> = Set(
        """
        password password1 password12 password123 password1234 password12345 password123456 password! passw0rd p@ssword
        p@ssw0rd pa$$word passpass letmein letmein1 letmeinplease welcome welcome1 welcome123 admin123 administrator
        administrator1 root toor changeme changeme123 changeit default guest123 test123 testtest testpassword secret
        secret123 topsecret mysecret mypassword mypassword1 thisismypassword thispassword yourpassword nopassword
        newpassword oldpassword firstpassword masterpassword adminpassword userpassword mypassword123 passwordpassword
        correcthorsebatterystaple qwerty qwerty1 qwerty12 qwerty123 qwertyui qwertyuiop qwertyuiop123 qwertyuiopasdf
        qwertyuiopasdfg qwertyuiopasdfgh qwertyuiopasdfghjkl qwertyuiopasdfghjklzxcvbnm asdfgh asdfghjkl asdfghjklqwerty
        zxcvbn zxcvbnm zxcvbnm123 1q2w3e 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1q2w3e4r5t6y7u8i 1qaz2wsx 1qaz2wsx3edc
        1qaz2wsx3edc4rfv qazwsx qazwsxedc qazwsxedcrfv qazwsxedcrfvtgb zaq12wsx zaq1zaq1 abc123 abcd1234 abcdef123456
        a1b2c3 a1b2c3d4 a123456 a1234567 a12345678 a123456789 aa123456 aa12345678 123abc 123456a 123456789a 1234567890a
        123456abc 123456789abc 1234567890abc 123qwe 123qweasd 123qweasdzxc 123qwe123 qwe123 q1w2e3r4 q1w2e3r4t5
        q1w2e3r4t5y6 112233 11223344 1122334455 112233445566 123123123a 123321 1234321 12344321 123454321 102030
        10203040 147258 147258369 159357 159753 159357456 741852963 789456 789456123 987654321a 13579 1357924680
        2468 24681357 0987654321a 1029384756 12341234a monkey monkey123 dragon dragon123 shadow shadow123 master master123
        sunshine sunshine1 princess princess1 football football1 baseball baseball1 basketball soccer hockey superman
        superman1 batman batman123 starwars pokemon pikachu naruto doraemon sailormoon hellokitty nintendo
        michael michael1 jennifer jessica charlie charlie1 jordan jordan23 michelle daniel ashley anthony thomas
        iloveyou iloveyou1 iloveyou2 iloveyou123 iloveyouforever iloveyousomuch ilovemyfamily ilovejesus trustno1
        whatever freedom forever friends family internet computer samsung google facebook youtube
        liverpool chelsea arsenal barcelona juventus realmadrid manchesterunited liverpoolfc summer winter spring autumn
        summer2024 summer2025 winter2024 winter2025 flower cookie chocolate butterfly angel1 lovely loveme
        killer hunter hunter2 ranger tigger pepper ginger purple orange banana cheese matrix mustang corvette
        access access14 login user user123 demo demo123 temp temp123 hato hato123 hatohato hatopassword
        sakura sakura123 sakurasakura aishiteru aishiteruyo nihongo tokyo2020 arigatou konnichiwa
        thequickbrownfox thequickbrownfoxjumps tobeornottobe loremipsumdolor loremipsumdolorsitamet
        administrator123 administratorpassword qwerty1234567890 1234567890qwerty qwertyuiop1234567890
        1234567890qwertyuiop password1234567 password12345678 password123456789 password1234567890
        """.split { $0 == " " || $0 == "\n" }.map(String.init))
}
