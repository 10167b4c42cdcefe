"""Tips by target, operator and language."""

from warpsmith.reporting import tips


def test_only_rounds_with_a_tip_in_the_order_they_closed(make):
    with_tip = make.campaign_of_three()[2]
    earlier = with_tip.model_copy(update={"closed": "2026-11-20 09:00", "campaign": "older"})
    told = tips.list_tips(
        [(with_tip, "d/b/record.json"), (make.record(1), "d/c"), (earlier, "d/a/record.json")], "k"
    )
    assert [row.record.campaign for row in told] == ["older", with_tip.campaign]
    page = tips.tips_page(told[0].subject, told)
    assert page.index("## 2026-11-20: triton/v3, ACCEPT") < page.index("## 2026-11-21: triton/v3, ACCEPT")
    assert "- Takeaway: Load wide." in page
    assert "[older, round 3](../../../../d/a/record.json)" in page


def test_another_language_is_another_page(make):
    record = make.campaign_of_three()[2]
    judged = record.evaluation.model_copy(update={"language": "cpp"})
    told = tips.list_tips([(record, "a"), (record.model_copy(update={"evaluation": judged}), "b")], "k")
    assert [row.subject.path for row in told] == ["experience/h200/norm/triton.md", "experience/h200/norm/cpp.md"]
    assert tips.tips_page(told[1].subject, told).count("- Record:") == 1
