// The whole behaviour of the site: colours, search, facets, records, and opening what an address points at.
// Without it every page still shows everything, but for the copies of records.
(function () {
  "use strict";

  function normalize(text) {
    // As warpsmith/knowledge/search/words.py: lower case, words apart, -ise as -ize.
    return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()
      .replace(/is(?=(?:e|ed|es|er|ing|ation)(?: |$))/g, "iz");
  }

  var SYNONYM = 0.8, PART = 0.5, FITTING = 0.45, TAIL = 0.22, MOST = 12;

  // Of two texts that fit alike, what to try comes before what to rule out, and both before single campaigns.
  var KINDS = { "anti-pattern": 0.9, campaign: 0.5 };

  // Weight of each text for one word: the word itself, or a longer or shorter form of it.
  function wordScores(index, word) {
    var scores = new Map();
    function add(list, factor) {
      for (var i = 0; list && i < list.length; i += 2) {
        scores.set(list[i], Math.max(scores.get(list[i]) || 0, list[i + 1] * factor));
      }
    }
    add(Object.hasOwn(index.words, word) ? index.words[word] : null, 1);
    if (word.length >= 3 && !/\d/.test(word)) {
      for (var other in index.words) {
        if (other === word || other.length < 3) continue;
        var shorter = other.length < word.length ? other : word;
        var longer = shorter === other ? word : other;
        if (!longer.startsWith(shorter)) continue;
        var rest = longer.length - shorter.length;
        if (rest <= 1 || (rest <= 3 && shorter.length >= 4)) add(index.words[other], 0.9);
        else if (shorter === word && word.length >= 4) add(index.words[other], PART);
      }
    }
    return scores;
  }

  // Weight of each text for a phrase: all of its words, more where title or names have it as it is.
  function phraseScores(index, phrase) {
    var words = phrase.split(" "), total = null;
    words.forEach(function (word) {
      var scores = wordScores(index, word), next = new Map();
      scores.forEach(function (score, place) {
        if (total === null || total.has(place)) next.set(place, score + (total ? total.get(place) : 0));
      });
      total = next;
    });
    total.forEach(function (score, place) {
      if (words.length > 1) {
        var whole = (" " + index.phrases[place] + " ").indexOf(" " + phrase) >= 0;
        total.set(place, score * (whole ? 1.3 : 0.8));
      }
    });
    return total;
  }

  // Parts of a question: the longest terms that the synonyms know, else single words.
  function concepts(index, question) {
    var idle = new Set(index.idle), all = normalize(question).split(" ").filter(Boolean);
    var words = all.filter(function (word) { return !idle.has(word) && !/^\d+$/.test(word); });
    if (!words.length) words = all;
    var parts = [], at = 0;
    function group(term) {
      var found = new Set();
      index.synonyms.forEach(function (phrases) {
        if (phrases.some(function (p) { return p.replace(/s$/, "") === term.replace(/s$/, ""); })) {
          phrases.forEach(function (p) { if (p !== term) found.add(p); });
        }
      });
      return Array.from(found);
    }
    while (at < words.length) {
      var taken = 1, term = words[at], others = [];
      for (var size = Math.min(4, words.length - at); size > 0; size--) {
        var candidate = words.slice(at, at + size).join(" "), synonyms = group(candidate);
        if (synonyms.length) { taken = size; term = candidate; others = synonyms; break; }
      }
      parts.push({ term: term, synonyms: others });
      at += taken;
    }
    return parts;
  }

  function search(index, question) {
    var sums = new Map(), covered = new Map(), weight = 0, total = index.texts.length;
    concepts(index, question).forEach(function (concept) {
      var best = new Map();
      function merge(scores, factor) {
        scores.forEach(function (score, place) { best.set(place, Math.max(best.get(place) || 0, score * factor)); });
      }
      merge(phraseScores(index, concept.term), 1);
      concept.synonyms.forEach(function (phrase) { merge(phraseScores(index, phrase), SYNONYM); });
      var count = best.size;  // words of a term apart say little of how rare it is
      if (concept.term.indexOf(" ") > 0) {
        concept.term.split(" ").forEach(function (word) { merge(wordScores(index, word), PART / 2); });
      }
      var rarity = Math.log(1 + (total - count + 0.5) / (count + 0.5));
      weight += rarity;
      best.forEach(function (score, place) {
        sums.set(place, (sums.get(place) || 0) + score);
        covered.set(place, (covered.get(place) || 0) + rarity);
      });
    });
    var phrase = normalize(question), hits = [];
    sums.forEach(function (score, place) {
      var coverage = covered.get(place) / weight;
      if (coverage < FITTING) return;
      var whole = phrase && normalize(index.texts[place][0]).indexOf(phrase) >= 0 ? 1.5 : 1;
      var weighted = score * coverage * whole * (KINDS[index.texts[place][2]] || 1);
      hits.push({ place: place, score: weighted });
    });
    hits.sort(function (a, b) { return b.score - a.score || a.place - b.place; });
    return hits.filter(function (hit) { return hit.score >= TAIL * hits[0].score; }).slice(0, MOST)
      .map(function (hit) { return index.texts[hit.place]; });
  }

  if (typeof document === "undefined") {
    globalThis.warpsmithFind = search;  // the tests run the search without a browser
    return;
  }

  // Colours: as the system says, until the reader chooses.
  var root = document.documentElement;
  function kept() { try { return localStorage.getItem("warpsmith-theme"); } catch (error) { return null; } }
  function keep(theme) { try { localStorage.setItem("warpsmith-theme", theme); } catch (error) { /* private mode */ } }
  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  if (kept()) root.dataset.theme = kept();

  function make(tag, text, name) {
    var element = document.createElement(tag);
    if (text) element.textContent = text;
    if (name) element.className = name;
    return element;
  }

  function setUpTheme() {
    var button = document.querySelector(".theme");
    if (!button) return;
    function label() { button.textContent = isDark() ? "Light" : "Dark"; }
    button.hidden = false;
    label();
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      keep(root.dataset.theme);
      label();
    });
  }

  function setUpSearch() {
    var input = document.getElementById("search"), box = document.getElementById("found");
    if (!input) return;
    var start = document.body.dataset.root, loading = false;
    input.disabled = false;
    input.form.addEventListener("submit", function (event) {
      event.preventDefault();
      var first = box.querySelector("a");
      if (first) first.click();
    });
    function show() {
      var index = window.warpsmithSearch, question = input.value.trim();
      box.replaceChildren();
      box.hidden = !question || !index;
      if (box.hidden) return;
      var hits = search(index, question), list = make("ol");
      hits.forEach(function (text) {
        var item = make("li"), link = make("a", text[0]);
        link.href = start + text[1];
        item.append(link, make("span", text[2], "kind"));
        if (text[3]) item.append(make("p", text[3]));
        list.append(item);
      });
      box.append(hits.length ? list : make("p", "Nothing fits. Use other words, or the name of a counter."));
    }
    function load() {
      if (loading) return;
      loading = true;
      var script = make("script");
      script.src = start + "search-index.js";
      script.addEventListener("load", show);
      document.head.append(script);
    }
    input.addEventListener("focus", load);
    input.addEventListener("input", function () { load(); show(); });
    document.addEventListener("keydown", function (event) {
      if (event.key === "Escape") { input.value = ""; show(); }
      if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
        event.preventDefault();
        input.focus();
      }
    });
  }

  function setUpFacets() {
    var form = document.querySelector(".facets");
    if (!form) return;
    var entries = Array.from(document.querySelectorAll(".entry")), count = document.querySelector(".count");
    form.hidden = false;
    function choose() {
      var chosen = Array.from(new FormData(form)).filter(function (pair) { return pair[1]; });
      var shown = 0;
      entries.forEach(function (entry) {
        entry.hidden = !chosen.every(function (pair) {
          return (entry.dataset[pair[0]] || "").split("|").indexOf(pair[1]) >= 0;
        });
        if (!entry.hidden) shown += 1;
      });
      count.textContent = shown + (shown === 1 ? " entry" : " entries") + " of " + entries.length;
      var query = new URLSearchParams(chosen).toString();
      try { history.replaceState(null, "", query ? "?" + query : location.pathname); } catch (error) { /* from disk */ }
    }
    new URLSearchParams(location.search).forEach(function (value, name) {
      if (form.elements[name]) form.elements[name].value = value;
    });
    form.addEventListener("change", choose);
    form.addEventListener("reset", function () { setTimeout(choose); });
    choose();
  }

  // An address that points into something folded unfolds it.
  function unfold() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var element = target; element; element = element.parentElement) {
      if (element.tagName === "DETAILS") element.open = true;
    }
    if (target) target.scrollIntoView();
  }

  // A figure names its record when it is pointed at.
  function setUpFigures() {
    var paths = {};
    document.querySelectorAll(".records li").forEach(function (row) {
      paths[row.firstChild.textContent] = row.lastChild.textContent;
    });
    document.addEventListener("mouseover", function (event) {
      var figure = event.target.closest("[data-sha256]");
      if (!(figure instanceof HTMLElement) || figure.closest("[title]")) return;
      figure.title = figure.dataset.sha256.split(" ").map(function (digits) { return paths[digits]; }).join("\n");
    });
  }

  // The page of a record shows the copy that its address names.
  function setUpRecord() {
    var box = document.getElementById("record"), path = document.getElementById("record-path");
    if (!box) return;
    window.addEventListener("hashchange", function () { location.reload(); });
    var name = decodeURIComponent(location.hash.slice(1));
    if (!/^records\//.test(name) || /(^|\/)\.\.?(\/|$)/.test(name)) return;
    path.textContent = name.slice("records/".length);
    window.warpsmithRecord = function (packed) {
      var bytes = Uint8Array.from(atob(packed), function (character) { return character.charCodeAt(0); });
      var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      new Response(stream).arrayBuffer().then(function (data) {
        var link = document.getElementById("record-file");
        box.textContent = new TextDecoder().decode(data);
        link.href = URL.createObjectURL(new Blob([data]));
        link.download = name.slice(name.lastIndexOf("/") + 1);
        link.hidden = false;
        return window.isSecureContext ? crypto.subtle.digest("SHA-256", data) : null;
      }).then(function (hash) {
        if (!hash) return;
        var digits = Array.from(new Uint8Array(hash), function (b) { return b.toString(16).padStart(2, "0"); });
        path.append(make("br"), "SHA-256 " + digits.join(""));
      });
    };
    var script = make("script");
    script.src = name.split("/").map(encodeURIComponent).join("/") + ".js";
    script.addEventListener("error", function () { box.textContent = "This site has no such record."; });
    document.head.append(script);
  }

  document.addEventListener("DOMContentLoaded", function () {
    setUpTheme();
    setUpSearch();
    setUpFacets();
    setUpFigures();
    setUpRecord();
    unfold();
    window.addEventListener("hashchange", unfold);
  });
})();
