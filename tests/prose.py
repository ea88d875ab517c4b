"""Invented prose in several scripts: the same random state gives the same words."""

from __future__ import annotations

import random
from dataclasses import dataclass

_EN = (
    "river stone market garden winter window letter harbour bridge engine paper copper village morning "
    "season teacher record valley kitchen meadow lantern signal current method measure question answer "
    "journey castle island forest weather machine pattern history memory shelter orchard railway compass"
)
_EN_VERBS = "carries follows opens keeps changes shows crosses holds reaches repairs explains measures finds joins"
_EN_ADJECTIVES = "old quiet narrow heavy early common bright careful distant simple broken wide steady modern plain"
_DE = (
    "Fluss Stein Markt Garten Winter Fenster Brief Hafen Brücke Motor Papier Kupfer Dorf Morgen Lehrer Tal "
    "Küche Wiese Laterne Signal Strom Verfahren Frage Antwort Reise Schloss Insel Wald Wetter Muster Geschichte"
)
_DE_VERBS = "trägt folgt öffnet behält ändert zeigt überquert hält erreicht erklärt misst findet verbindet"
_RU = (
    "река камень рынок сад зима окно письмо гавань мост двигатель бумага деревня утро учитель долина кухня "
    "поляна фонарь сигнал метод вопрос ответ дорога замок остров лес погода машина узор история память"
)
_AR = (
    "نهر حجر سوق حديقة شتاء نافذة رسالة ميناء جسر محرك ورق نحاس قرية صباح معلم وادي مطبخ مرج فانوس إشارة "
    "تيار طريقة قياس سؤال جواب رحلة قلعة جزيرة غابة طقس آلة نمط تاريخ ذاكرة"
)
_HE = "נהר אבן שוק גן חורף חלון מכתב נמל גשר מנוע נייר נחושת כפר בוקר מורה עמק מטבח אחו פנס אות זרם שיטה שאלה תשובה"
_ZH = "河流石头市场花园冬天窗户书信港口桥梁发动机纸张铜矿村庄早晨老师山谷厨房草地灯笼信号方法测量问题回答旅程城堡岛屿森林天气"
_JA = (
    "川の石は市場へ庭から冬を窓に手紙と港も橋が機械で紙や村まで朝より先生谷台所草原灯り合図方法質問答え旅城島森天気記憶"
)
_KO = "강 돌 시장 정원 겨울 창문 편지 항구 다리 기관 종이 구리 마을 아침 선생 골짜기 부엌 풀밭 등불 신호 방법 질문 대답 여행 성 섬 숲 날씨"


@dataclass(frozen=True)
class Language:
    """How a language makes its sentences: words between spaces, or characters without them."""

    code: str
    nouns: tuple[str, ...]
    verbs: tuple[str, ...] = ()
    adjectives: tuple[str, ...] = ()
    spaced: bool = True
    stop: str = "."
    direction: str = "ltr"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LANGUAGES = {
    language.code: language
    for language in (
        Language("en", _words(_EN), _words(_EN_VERBS), _words(_EN_ADJECTIVES)),
        Language("de", _words(_DE), _words(_DE_VERBS)),
        Language("ru", _words(_RU)),
        Language("ar", _words(_AR), direction="rtl"),
        Language("he", _words(_HE), direction="rtl"),
        Language("ko", _words(_KO)),
        Language("zh", tuple(_ZH), spaced=False, stop="。"),
        Language("ja", tuple(_JA), spaced=False, stop="。"),
    )
}


class Prose:
    """Sentences of one language from one random state."""

    def __init__(self, rng: random.Random, code: str = "en") -> None:
        self.rng = rng
        self.language = LANGUAGES[code]

    def phrase(self, low: int = 2, high: int = 5) -> str:
        """A few words: a title, a link's text."""
        language = self.language
        if not language.spaced:
            return "".join(self.rng.choices(language.nouns, k=self.rng.randint(2 * low, 3 * high)))
        text = " ".join(self.rng.choices(language.nouns + language.adjectives, k=self.rng.randint(low, high)))
        return text[0].upper() + text[1:]

    def sentence(self) -> str:
        """One sentence of 6 to 20 words (or 12 to 40 characters)."""
        language, rng = self.language, self.rng
        if not language.spaced:
            clauses = ["".join(rng.choices(language.nouns, k=rng.randint(6, 14))) for _ in range(rng.randint(2, 3))]
            return ("、" if language.code == "ja" else "，").join(clauses) + language.stop
        if language.code != "en":
            words = rng.choices(language.nouns, k=rng.randint(5, 16))
            if language.verbs:
                words.insert(len(words) // 2, rng.choice(language.verbs))
            text = " ".join(words)
            return text[0].upper() + text[1:] + language.stop
        subject, verb, target = (
            rng.choice(language.nouns),
            rng.choice(language.verbs),
            rng.choice(language.nouns),
        )
        text = f"The {rng.choice(language.adjectives)} {subject} {verb} the {target}"
        if rng.random() < 0.6:
            text += f", and every {rng.choice(language.nouns)} of the {rng.choice(language.nouns)} is there"
        if rng.random() < 0.4:
            text += f" when it {rng.choice(language.verbs)} a {rng.choice(language.adjectives)} {rng.choice(language.nouns)}"
        return text + "."

    def paragraph(self, low: int = 2, high: int = 6) -> str:
        """Some sentences."""
        between = " " if self.language.spaced else ""
        return between.join(self.sentence() for _ in range(self.rng.randint(low, high)))
