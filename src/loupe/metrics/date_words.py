"""Words of dates in 73 languages, folded: written by script/make_date_words.py, not by hand.

Derived data: names from the Unicode CLDR, by Babel 2.19.0, folded and merged. The notice below applies to them.
"""

# UNICODE LICENSE V3
#
# COPYRIGHT AND PERMISSION NOTICE
#
# Copyright © 2004-2025 Unicode, Inc.
#
# NOTICE TO USER: Carefully read the following legal agreement. BY
# DOWNLOADING, INSTALLING, COPYING OR OTHERWISE USING DATA FILES, AND/OR
# SOFTWARE, YOU UNEQUIVOCALLY ACCEPT, AND AGREE TO BE BOUND BY, ALL OF THE
# TERMS AND CONDITIONS OF THIS AGREEMENT. IF YOU DO NOT AGREE, DO NOT
# DOWNLOAD, INSTALL, COPY, DISTRIBUTE OR USE THE DATA FILES OR SOFTWARE.
#
# Permission is hereby granted, free of charge, to any person obtaining a
# copy of data files and any associated documentation (the "Data Files") or
# software and any associated documentation (the "Software") to deal in the
# Data Files or Software without restriction, including without limitation
# the rights to use, copy, modify, merge, publish, distribute, and/or sell
# copies of the Data Files or Software, and to permit persons to whom the
# Data Files or Software are furnished to do so, provided that either (a)
# this copyright and permission notice appear with all copies of the Data
# Files or Software, or (b) this copyright and permission notice appear in
# associated Documentation.
#
# THE DATA FILES AND SOFTWARE ARE PROVIDED "AS IS", WITHOUT WARRANTY OF ANY
# KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
# MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT OF
# THIRD PARTY RIGHTS.
#
# IN NO EVENT SHALL THE COPYRIGHT HOLDER OR HOLDERS INCLUDED IN THIS NOTICE
# BE LIABLE FOR ANY CLAIM, OR ANY SPECIAL INDIRECT OR CONSEQUENTIAL DAMAGES,
# OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS,
# WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION,
# ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THE DATA
# FILES OR SOFTWARE.
#
# Except as contained in this notice, the name of a copyright holder shall
# not be used in advertising or otherwise to promote the sale, use or other
# dealings in these Data Files or Software without prior written
# authorization of the copyright holder.
#
# SPDX-License-Identifier: Unicode-3.0

from __future__ import annotations

#: Months, January first; a word that means two is in both. A name of two words has an underscore.
MONTHS = (
    (
        "1_月 de_gen de_gener ean eanair ene enero gen gener gennaio ian ianuarie ion ionawr jaan jaanuar jan "
        "janar janeiro janner januar januara januari januarie january janv janvaris janvier led leden ledna "
        "oca ocak saus sausio sausis sij sijecanj sijecnja sty styczen stycznia tammi tammikuu tammikuuta urt "
        "urtarrila urtarrilaren xan xaneiro yan yanvar ιαν ιανουαριοσ ιανουαριου сту студзень студзеня січ "
        "січень січня янв январь января яну януари јан јануар јануари қаң қаңтар հնվ հունվար հունվարի בינואר "
        "בינו׳ ינואר ינו׳ جانفي جنوری كانون_الثاني يناير ژانویه जनवरी जन॰ जाने जानेवारी জানু জানুযারি ਜਨ "
        "ਜਨਵਰੀ જાનયુ જાનયુઆરી ஜன ஜனவரி జన జనవరి ಜನ ಜನವರಿ ജനു ജനുവരി දුරුතු ม.ค มกราคม ມ.ກ ມັງກອນ ဇန ဇနနဝါရီ "
        "იან იანვარი ጃን ጃንዋሪ មករា "
    ),
    (
        "2_月 chw chwef chwefror de_febr de_febrer feabh feabhra feb febbraio febr febreiro febrer febrero "
        "februar februara februari februarie februaris february fev fevereiro fevr fevral fevrier helmi "
        "helmikuu helmikuuta lut lutego luty ots otsaila otsailaren peb pebrero shk shkurt sub subat uno unor "
        "unora vas vasario vasaris veebr veebruar velj veljaca veljace φεβ φεβρουαριοσ φεβρουαριου ақп ақпан "
        "лют лютага лютии лютого люты феб фебруар фев февр февраль февраля февруари փետրվար փետրվարի փտվ "
        "בפברואר בפבר׳ פברואר פבר׳ شباط فبراير فروری فوریه فيفري फरवरी फर॰ फेबरु फेबरुअरी फेबरुवारी ফেব "
        "ফেবরুযারি ਫਰ ਫਰਵਰੀ ફેબરુ ફેબરુઆરી பிப பிபரவரி ఫిబర ఫిబరవరి ಫೆಬರ ಫೆಬರವರಿ ഫെബരു ഫെബരുവരി නවම ก.พ "
        "กมภาพันธ์ ກ.ພ ກມພາ ဖေ ဖေဖောဝါရီ თებ თებერვალი ፌብ ፌብሩዋሪ កុមភៈ "
    ),
    (
        "3_月 bre brezen brezna de_marc kov kovas kovo maa maalis maaliskuu maaliskuuta maart mac machi maerz "
        "mar marc marca march marcius marco marec maret mars marso mart marta martie marts martxoa martxoaren "
        "marz marzec marzo maw mawrth mrt mrz ozu ozujak ozujka μαρ μαρτιοσ μαρτιου бер березень березня мар "
        "март марта нау наурыз сак сакавік сакавіка մարտ մարտի մրտ במרץ מרץ اذار مارس مارچ मारच মারচ ਮਾਰਚ "
        "મારચ மார மாரச మారచి ಮಾರಚ മാർ മാർചച මැදින มี.ค มีนาคม ມ.ນ ມີນາ မတ მარ მარტი ማርች មីនា "
    ),
    (
        "4_月 abr abril aib aibrean api apirila apirilaren apr aprel april aprila aprile aprili aprilie "
        "aprilis aprill avr avril bal balandis balandzio d'abr d'abril dub duben dubna ebr ebrill huhti "
        "huhtikuu huhtikuuta kwi kwiecien kwietnia nis nisan pri prill tra travanj travnja απρ απριλιοσ "
        "απριλιου апр апрель апреля април квіт квітень квітня кра красавік красавіка сәу сәуір ապր ապրիլ "
        "ապրիլի אפריל אפר׳ באפריל באפר׳ ابريل افريل اوریل اپریل نيسان अपरिल अपरैल एपरि एपरिल এপরি এপরিল ਅਪਰੈ "
        "ਅਪਰੈਲ એપરિલ ஏப ஏபரல ఏపరి ఏపరిల ಏಪರಿ ಏಪರಿಲ ഏപരി ഏപരിൽ බක เม.ย เมษายน ມ.ສ ເມສາ ဧ ဧပြီ აპრ აპრილი ኤፕሪ "
        "ኤፕሪል មេសា "
    ),
    (
        "5_月 beal bealtaine de_maig geg geguze geguzes kve kveten kvetna mag maggio mai maiatza maiatzaren "
        "maig maijs maio maj maja majus may mayis mayo mei svi svibanj svibnja touko toukokuu toukokuuta μαι "
        "μαιοσ μαιου маи мам мамыр мая мај трав травень травня մայիս մայիսի մյս במאי מאי ايار ماي مايو مه ميی "
        "मई मे মে ਮਈ મે மே మే ಮೇ മേയ වෙසක พ.ค พฤษภาคม ພ.ພ ພຶດສະພາ မေ მაი მაისი ሜይ ឧសភា "
    ),
    (
        "6_月 birz birzelio birzelis cerven cervna cvn cze czerwca czerwiec de_juny eka ekaina ekainaren giu "
        "giugno haz haziran hun hunyo iun iunie iyn iyun juin jun juna june junho juni junie junij junijs "
        "junio junius juny juuni kesa kesakuu kesakuuta lip lipanj lipnja meh mehefin meith meitheamh qer "
        "qershor xuno ιουν ιουνιοσ ιουνιου июн июнь июня мау маусым черв червень червня чэр чэрвень чэрвеня "
        "юни јун јуни հնս հունիս հունիսի ביוני יוני جوان جون حزيران يونيو ژوين जुन जून জুন ਜੂਨ જૂન ஜூன జూన "
        "ಜೂನ ജൂൺ පොසොන มิ.ย มิถนายน ມິ.ຖ ມິຖນາ ဇွန ივნ ივნისი ጁን មិថុនា "
    ),
    (
        "7_月 cervence cervenec cvc de_jul de_juliol gor gorff gorffennaf heina heinakuu heinakuuta hul hulyo "
        "iuil iul iulie iyl iyul juil juillet jul jula julai julho juli julie julij julijs julio juliol "
        "julius july juuli korr korrik liep liepa liepos lip lipca lipiec lug luglio srp srpanj srpnja tem "
        "temmuz uzt uztaila uztailaren xul xullo ιουλ ιουλιοσ ιουλιου июл июль июля лип липень липня ліп "
        "ліпень ліпеня шіл шілде юли јул јули հլս հուլիս հուլիսի ביולי יולי تموز جولايی جويلية يوليو يوليوز "
        "ژويیه जुलाई जुलै जुल॰ জুল জুলাই ਜੁਲਾ ਜੁਲਾਈ જુલાઈ ஜூலை జులె ಜುಲೈ ജൂലൈ ඇසළ ก.ค กรกฎาคม ກ.ລ ກໍລະກົດ ဇူ "
        "ဇူလိုင ივლ ივლისი ጁላይ កកកដា "
    ),
    (
        "8_月 abu abuztua abuztuaren ag ago agost agosti agosto agu agust agustos agustus aou aout aug august "
        "augusta augusti augusts augustus augusztus avg avgust avq avqust awst d'ag d'agost elo elokuu "
        "elokuuta gush gusht kol kolovoz kolovoza lun lunasa ogo ogos rugp rugpjucio rugpjutis sie sierpien "
        "sierpnia srp srpen srpna αυγ αυγουστοσ αυγουστου авг август августа жні жнівень жніуня серп серпень "
        "серпня там тамыз օգոստոս օգոստոսի օգս אוגוסט אוג׳ באוגוסט באוג׳ اب اغسطس اوت اگست غشت अगसट अगसत अग॰ "
        "ऑग ऑगसट আগ আগসট ਅਗ ਅਗਸਤ ઑગસટ ஆக ஆகஸட ఆగ ఆగసటు ಆಗ ಆಗಸಟ ഓഗ ഓഗസററ නිකිණි ส.ค สิงหาคม ສ.ຫ ສິງຫາ ဩ ဩဂုတ "
        "აგვ აგვისტო ኦገስ ኦገስት សីហា "
    ),
    (
        "9_月 de_set de_setembre eyl eylul ira iraila irailaren mean_fomhair medi mfomh rugs rugsejis rugsejo "
        "ruj rujan rujna sen sentabr sentyabr sep sept septemba septembar september septembra septembre "
        "septembrie septembris septiembre set setembre setembro setiembre settembre setyembre sht shtator "
        "syys syyskuu syyskuuta szept szeptember wrz wrzesien wrzesnia zar zari σεπ σεπτεμβριοσ σεπτεμβριου "
        "вер верасень верасня вересень вересня сен сент сентябрь сентября сеп септембар септември қыр "
        "қыркүиек սեպ սեպտեմբեր սեպտեմբերի בספטמבר בספט׳ ספטמבר ספט׳ ايلول سبتمبر ستمبر سپتامبر شتنبر सपटें "
        "सपटेंबर सितंबर सित॰ सेपटेमबर সেপ সেপট সেপটেমবর ਸਤੰ ਸਤੰਬਰ સપટે સપટેમબર செப செபடமபர సెపటెం సెపటెంబర "
        "ಸೆಪಟೆಂ ಸೆಪಟೆಂಬರ സെപററം സെപററംബർ බිනර ก.ย กันยายน ກ.ຍ ກັນຍາ စက စကတငဘာ სექ სექტემბერი ሴፕቴ ሴፕቴምበር កញញា "
    ),
    (
        "10_月 d'oct d'octubre deireadh_fomhair dfomh eki ekim hyd hydref lis listopad listopada loka lokakuu "
        "lokakuuta oct october octobre octombrie octubre okt oktabr oktoba oktobar oktober oktobra oktobris "
        "oktoober oktubre oktyabr ott ottobre out outubro paz pazdziernik pazdziernika rij rijen rijna spal "
        "spalio spalis tet tetor urr urria urriaren οκτ οκτωβριοσ οκτωβριου жовт жовтень жовтня кас "
        "кастрычнік кастрычніка окт октобар октомври октябрь октября қаз қазан հոկ հոկտեմբեր հոկտեմբերի "
        "אוקטובר אוק׳ באוקטובר באוק׳ اكتوبر اکتبر اکتوبر تشرين_الاول अकटूबर अकटू॰ अकटोबर ऑकटो ऑकटोबर অকটো "
        "অকটোবর ਅਕਤੂ ਅਕਤੂਬਰ ઑકટો ઑકટોબર அக அகடோபர అకటో అకటోబర ಅಕಟೋ ಅಕಟೋಬರ ഒകടോ ഒകടോബർ වප ต.ค ตลาคม ຕ.ລ ຕລາ "
        "အောက အောကတိုဘာ ოქტ ოქტომბერი ኦክቶ ኦክቶበር តុលា "
    ),
    (
        "11_月 aza azaroa azaroaren de_nov de_novembre kas kasim lapkr lapkricio lapkritis lis listopad "
        "listopada listopadu marras marraskuu marraskuuta nen nentor nob nobyembre noiembrie nov novemba "
        "novembar november novembra novembre novembris novembro noviembre noy noyabr samh samhain stu studeni "
        "studenoga tach tachwedd νοε νοεμβριοσ νοεμβριου лист листопад листопада ліс лістапад лістапада нов "
        "новембар ное ноември ноя нояб ноябрь ноября қар қараша նոյ նոյեմբեր նոյեմբերի בנובמבר בנוב׳ נובמבר "
        "נוב׳ تشرين_الثاني نوامبر نوفمبر نومبر نونبر नवंबर नव॰ नोभेमबर नोवहें नोवहेंबर নভে নভেমবর ਨਵੰ ਨਵੰਬਰ "
        "નવે નવેમબર நவ நவமபர నవం నవంబర ನವೆಂ ನವೆಂಬರ നവം നവംബർ ඉල พ.ย พฤศจิกายน ພ.ຈ ພະຈິກ နို နိုဝငဘာ ნოე "
        "ნოემბერი ኖቬም ኖቬምበር វិចឆិកា "
    ),
    (
        "12_月 abe abendua abenduaren ara aralik de_des de_desembre dec decembar december decembra decembre "
        "decembrie decembris decembro dek dekabr des desemba desember desembre dets detsember dez dezember "
        "dezembro dhj dhjetor dic dicembre diciembre dis disember disyembre gru grudnia grudzien gruod "
        "gruodis gruodzio joulu joulukuu joulukuuta noll nollaig pro prosinac prosinca prosince prosinec rhag "
        "rhagfyr δεκ δεκεμβριοσ δεκεμβριου груд грудень грудня дек декабрь декабря декември дец децембар жел "
        "желтоқсан сне снежань снежня դեկ դեկտեմբեր դեկտեմբերի בדצמבר בדצמ׳ דצמבר דצמ׳ دجنبر دسامبر دسمبر "
        "ديسمبر كانون_الاول डिसें डिसेंबर डिसेमबर दिसंबर दिस॰ ডিসে ডিসেমবর ਦਸੰ ਦਸੰਬਰ ડિસે ડિસેમબર டிச டிசமபர "
        "డిసెం డిసెంబర ಡಿಸೆಂ ಡಿಸೆಂಬರ ഡിസം ഡിസംബർ උඳුවප ธ.ค ธันวาคม ທ.ວ ທັນວາ ဒီ ဒီဇငဘာ დეკ დეკემბერი ዲሴም "
        "ዲሴምበር ធនូ "
    ),
)
#: Words that mean two months, and the one that is meant more often.
AMBIGUOUS = {
    "lip": 7,
    "lis": 11,
    "listopad": 11,
    "listopada": 11,
    "srp": 8,
}
#: Weekdays, and what else stands in dates: words for day and year, articles.
OTHERS = (
    "a ah ahad ahd al alhamisi an antradienis ao aoine ar "
    "asteartea asteazkena astelehena axsami az b b.e ba bay "
    "bazar biy biyernes c c.a ca car carsamba ce cead "
    "ceadaoin cet cetrtek ceturtd ceturtdiena cetvrtak ch "
    "chor chorshanba chu cmt cn cs csutortok ct ctvrtek cu "
    "cum cuma cumartesi cumə czw czwartek cərsənbə d dc de "
    "dear deardaoin del den dg di die diel dienstag dijous "
    "dilluns dim dimanche dimarts dimecres dinsdag dissabte "
    "diumenge divendres dj dl do dom domenica domh domhnaigh "
    "domingo donderdag donnerstag ds dt du dum duminica dush "
    "dushanba dv dydd e enj enjte ertəsi esmaspaev feira fi "
    "fim fimmtudagur fo fos fostudagur fr fre fredag freitag "
    "fri friday gada gio giovedi gw gwe gwen gwener h hai "
    "haoine hen hene hetfo huw huwebes ia iau ig igandea "
    "ijumaa is isn isnin je jeu jeudi joi ju jue jueves jum "
    "juma jumaat jumamosi jumanne jumapili jumat jumatano "
    "jumatatu k kam kamis ke kedd keskiviikko keskiviikkona "
    "ketvirtadienis kh kha khamis ko kolmapaev kt l la "
    "larunbata lau lauantai lauantaina laugardagur laupaev "
    "laurdag lin linggo ll llun lo lor lordag lr lu luain "
    "luan lun lundi lunedi lunes luni luns lø lør lørdag m "
    "ma maanantai maanantaina maandag mairt man mandag "
    "manudagur mar mardi marte martedi martes marti maw "
    "mawrth me mer mercher mercoledi mercores mercredi "
    "merkure mi mie miercoles miercuri min minggu mittwoch "
    "miy miyerkules mið miðvikudagur mo mon monday montag n "
    "nam ne ned nedela nedele nedelja nedjelja neljapaev "
    "nhat nie niedz niedziela og on ons onsdag or osteguna "
    "ostirala ot otrd otrdiena p pa patek pay payshanba paz "
    "pazar pazartesi pe penktadienis pentek per perjantai "
    "perjantaina persembe pet petak petek pi pia piatek "
    "piatok piektd piektdiena pirmadienis pirmd pirmdiena pk "
    "pn po pon pondeli pondelok ponedeljak ponedeljek "
    "ponedjeljak poniedziałek pr pre premte pt puhapaev pzt "
    "qua quarta qui quinta r ra rab rabu reede s sa sab "
    "sabado sabato sabtu sad sadwrn sal sali sam sambata "
    "samedi samstag sat saterdag sath sathairn saturday sau "
    "se seg segunda sekmadienis sel selasa sen senin sesh "
    "seshanba sestadienis sestd sestdiena sex sexta sh shan "
    "shanba sht shtune sk so sob sobota son sondag sonntag "
    "sr sre sreda sri srijeda sro sroda st streda stvrtok su "
    "sub subota sul sun sunday sunnudagur sunnuntai "
    "sunnuntaina sv svetd svetdiena sze szerda szo szombat "
    "sø søn søndag sənbə t teisipaev ter terca th thang thg "
    "thu thursday ti tiistai tiistaina tir tirs tirsdag tis "
    "tisdag to tor torek tors torsdag torstai torstaina tr "
    "treciadienis tresd tresdiena tu tue tuesday ty tysdag "
    "ut utery uto utorak utorok v vasarnap ve ven vendredi "
    "venerdi venres vi vie viernes vin vineri vr vrijdag "
    "vrydag we wed wednesday wo woensdag wt wto wtorek xo "
    "xov xoves ya yak yakshanba za zaterdag zo zondag þr þri "
    "þriðjudagur δε δευ δευτερα κυ κυρ κυριακη πα παρ "
    "παρασκευη πε πεμ πεμπτη σα σαβ σαββατο τε τετ τεταρτη "
    "τρ τρι τριτη ау ауторак беисенбі беиш беишемби бс бш "
    "воскресенье вс вт вто вторник вівторок г дс дш дүи "
    "дүисенбі дүишөмбү ж жек жексенбі жекшемби жм жс жума жш "
    "жұма иш ишемби ишм нд не нед недела неделя недеља "
    "неділя нядзеля пʼятниця панядзелак пе пет петак петок "
    "петък пн по пон понеделник понедельник понедељак "
    "понеділок пт пятница пятніца р саб сабота сб сеисенбі "
    "сенбі серада середа ср сре среда сряда сс су суб "
    "суббота субота събота сәрсенбі ут уто уторак чацвер че "
    "чет четвер четверг четвртак четврток четвъртък чт чц "
    "шарш шаршемби шеиш шеишемби шр шш եկ երեքշաբթի երկ "
    "երկուշաբթի երք եք թ կիր կիրակի կր հգ հինգշաբթի հնգ "
    "շաբաթ շբ շբթ ու ուր ուրբաթ չորեքշաբթի չրք չք א׳ ב׳ ג׳ "
    "ד׳ ה׳ ו׳ חמישי יום ראשון רביעי שבת שישי שלישי שני ש׳ "
    "اتوار اثنين احد اربعاء الاثنين الاحد الاربعاء الثلاثاء "
    "الجمعة الخميس السبت بدھ ثلاثاء ج جمعة جمعرات جمعه جمعہ "
    "خميس دوشنبه سبت سهشنبه ش شنبه منگل پنجشنبه پیر چهارشنبه "
    "ہفتہ یکشنبه आइत आइतबार गु गुरु गुरुवार बिहि बिहिबार बु "
    "बुध बुधबार बुधवार मं मंगल मंगलवार मंगळ मंगळवार मङगल "
    "मङगलबार र रवि रविवार श शनि शनिबार शनिवार शु शुकर "
    "शुकरबार शुकरवार सो सोम सोमबार सोमवार বুঃ বুধ বুধবার বৃঃ "
    "বৃহসপতি বৃহসপতিবার মঃ মঙগল মঙগলবার রঃ রবি রবিবার শনি "
    "শনিবার শুঃ শুকর শুকরবার সোঃ সোম সোমবার ਐਤ ਐਤਵਾਰ ਬੁੱਧ "
    "ਬੁੱਧਵਾਰ ਮੰਗ ਮੰਗਲ ਮੰਗਲਵਾਰ ਵੀਰ ਵੀਰਵਾਰ ਸਨੀ ਸਨੀਵਾਰ ਸੁੱਕ "
    "ਸੁੱਕਰ ਸੁੱਕਰਵਾਰ ਸੋਮ ਸੋਮਵਾਰ ગુ ગુરુ ગુરુવાર બુ બુધ બુધવાર "
    "મં મંગળ મંગળવાર ર રવિ રવિવાર શ શનિ શનિવાર શુ શુકર "
    "શુકરવાર સો સોમ સોમવાર ச சனி செ செவ செவவாய ஞா ஞாயி "
    "ஞாயிறு தி திங திஙகள பு புத புதன வி வியா வியாழன வெ வெள "
    "வெளளி ఆది ఆదివారం గురు గురువారం బుధ బుధవారం మం మంగళ "
    "మంగళవారం శని శనివారం శుకర శుకరవారం సోమ సోమవారం ಗುರು "
    "ಗುರುವಾರ ಬುಧ ಬುಧವಾರ ಭಾನು ಭಾನುವಾರ ಮಂಗಳ ಮಂಗಳವಾರ ಶನಿ ಶನಿವಾರ "
    "ಶುಕರ ಶುಕರವಾರ ಸೋಮ ಸೋಮವಾರ ചൊ ചൊവവ ചൊവവാഴച ഞാ ഞായറാഴച ഞായർ "
    "തി തിങകളാഴച തിങകൾ ബു ബുധനാഴച ബുധൻ വയാ വയാഴം വയാഴാഴച വെ "
    "വെളളി വെളളിയാഴച ശ ശനി ശനിയാഴച අඟ අඟහ අඟහරුවාදා ඉරි "
    "ඉරිදා බදා බදාදා බරහ බරහස බරහසපතිනදා සඳු සඳුදා සිකු "
    "සිකුරාදා සෙන සෙනසුරාදා ค.ศ จ จันทร์ พ พธ พฤ พฤหัส "
    "วันจันทร์ วันจันทร์ที วันพธ วันพธที วันพฤหัสบดี "
    "วันพฤหัสบดีที วันศกร์ วันศกร์ที วันอังคาร วันอังคารที "
    "วันอาทิตย์ วันอาทิตย์ที วันเสาร์ วันเสาร์ที ศ ศกร์ ส อ "
    "อังคาร อา อาทิตย์ เสาร์ ຈ ຈັນ ພ ພດ ພຫ ພະຫັດ ວັນຈັນ "
    "ວັນພດ ວັນພະຫັດ ວັນສກ ວັນອັງຄານ ວັນອາທິດ ວັນເສົາ ສ ສກ ອ "
    "ອັງຄານ ອາ ອາທິດ ເສົາ ကြာ ကြာသပတေး ဂါ စနေ တနငဂနွေ တနငလာ "
    "တေး နေ နွေ ဗုဒဓဟူး လာ သောကြာ ဟူး အငဂါ ၊ კვ კვი კვირა ოთ "
    "ოთხ ოთხშაბათი ორ ორშ ორშაბათი პარ პარასკევი პრ სამ "
    "სამშაბათი სმ შაბ შაბათი შბ ხთ ხუთ ხუთშაბათი ሐ ሐሙስ ማ ማክሰ "
    "ማክሰኞ ረ ረቡዕ ሰ ሰኞ ቅ ቅዳሜ እ እሑድ ዓ ዓርብ ច ចនទ ច័នទ ពរ ពរហ "
    "ពរហសបតិ៍ ពុ ពុធ ស សុ សុករ សៅរ៍ អ អងគារ អា អាទិតយ 周一 周三 "
    "周二 周五 周六 周四 周日 土 土曜日 年 日 日土曜日 日日曜日 日星期一 日星期三 日星期二 日星期五 "
    "日星期六 日星期四 日星期日 日曜日 日月曜日 日木曜日 日水曜日 日火曜日 日金曜日 星期一 星期三 星期二 "
    "星期五 星期六 星期四 星期日 月 月曜日 木 木曜日 水 水曜日 火 火曜日 金 金曜日 금 금요일 년 목 "
    "목요일 수 수요일 월 월요일 일 일요일 토 토요일 화 화요일 "
)
